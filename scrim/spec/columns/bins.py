"""The division of numbers into bins."""

from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field

from scrim.spec.columns.declared import MAX_CODES, Declared

MAX_EDGES = 10_000
"""Largest number of listed edges."""
MAX_ADAPTIVE = 1_000
"""Largest number of bins that the data choose."""
DEFAULT_ADAPTIVE = 32
"""Bins of a column of numbers that needs some and declares none."""


class BinShape(Declared):
    """The distribution of numbers inside the bins: shares of smaller intervals."""

    edges: Annotated[list[float], Field(min_length=2, max_length=MAX_EDGES, fail_fast=True)]
    """Increasing edges of the intervals. All edges of the bins are among them."""
    weights: Annotated[
        list[Annotated[float, Field(ge=0)]],
        Field(min_length=1, max_length=MAX_EDGES, fail_fast=True),
    ]
    """The relative weight of each interval inside its bin. If all weights of a bin are 0, its intervals are
    weighted by their widths."""

    def refuse_faults(self) -> None:
        """Require increasing edges, and a weight for each interval."""
        _refuse_unordered(self.edges)
        if len(self.weights) != len(self.edges) - 1:
            raise ValueError("a shape needs one weight for each interval between its edges")


class Bins(Declared):
    """The division of numbers into half-open bins [a, b); the last one is closed. Give exactly one of width,
    count, edges and adaptive."""

    width: Annotated[float, Field(gt=0)] | None = None
    """Bins of this width, starting from `lower`; the last one may be narrower."""
    count: Annotated[int, Field(ge=1, le=MAX_CODES)] | None = None
    """Number of bins of equal width."""
    edges: (
        Annotated[list[float], Field(min_length=2, max_length=MAX_EDGES, fail_fast=True)] | None
    ) = None
    """Increasing edges; the first is `lower`, the last is `upper`. If the last edge is repeated, the last bin
    holds `upper` alone."""
    # Left out of stored schemas without it: they and their hashes are older than these fields.
    adaptive: Annotated[int, Field(ge=2, le=MAX_ADAPTIVE)] | None = Field(
        default=None, exclude_if=lambda number: number is None
    )
    """Number of bins whose edges follow from the data. They are placed from noisy counts, which a share of
    each release's budget pays for (`bins_share`). Values that many rows have get bins of their own."""
    shape: BinShape | None = Field(default=None, exclude_if=lambda shape: shape is None)
    """How values are distributed inside bins with `edges`. Without it, they are drawn uniformly."""

    def refuse_faults(self) -> None:
        """Require exactly one field, and increasing edges."""
        names = ("width", "count", "edges", "adaptive")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("give exactly one of width, count, edges and adaptive")
        if self.edges is not None:
            _refuse_unordered(self.edges)
        if self.shape is not None:
            self._refuse_other_shape(self.shape)

    def _refuse_other_shape(self, shape: BinShape) -> None:
        if self.edges is None:
            raise ValueError("a shape divides bins with edges; give edges, or leave shape out")
        same_end = self.edges[-2:] == shape.edges[-2:] or self.edges[-2] < self.edges[-1]
        if not set(self.edges) <= set(shape.edges) or not same_end:
            raise ValueError("the edges of a shape must contain all edges of the bins")
        if (self.edges[0], self.edges[-1]) != (shape.edges[0], shape.edges[-1]):
            raise ValueError("a shape must begin and end where the bins do")

    def placed(self, edges: list[float], shape: BinShape | None) -> Self:
        """The same number of bins, at edges that were placed."""
        return type(self)(edges=edges, shape=shape)


def _refuse_unordered(edges: list[float]) -> None:
    inner = edges[:-1] if len(edges) > 2 else edges
    if any(a >= b for a, b in pairwise(inner)) or edges[-2] > edges[-1]:
        raise ValueError("edges must increase")
