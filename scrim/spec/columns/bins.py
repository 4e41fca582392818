"""The division of numbers into bins."""

from itertools import pairwise
from typing import Annotated

from pydantic import Field

from scrim.spec.columns.declared import MAX_CODES, Declared

MAX_EDGES = 10_000
"""Largest number of listed edges."""


class Bins(Declared):
    """The division of numbers into half-open bins [a, b); the last one is closed. Give exactly one field."""

    width: Annotated[float, Field(gt=0)] | None = None
    """Bins of this width, starting from `lower`; the last one may be narrower."""
    count: Annotated[int, Field(ge=1, le=MAX_CODES)] | None = None
    """Number of bins of equal width."""
    edges: (
        Annotated[list[float], Field(min_length=2, max_length=MAX_EDGES, fail_fast=True)] | None
    ) = None
    """Increasing edges; the first is `lower`, the last is `upper`."""

    def refuse_faults(self) -> None:
        """Require exactly one field, and increasing edges."""
        given = [name for name in ("width", "count", "edges") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("give exactly one of width, count and edges")
        if self.edges is not None and any(a >= b for a, b in pairwise(self.edges)):
            raise ValueError("edges must increase")
