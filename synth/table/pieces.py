"""The intervals inside bins from which values are drawn."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scrim.spec.columns import IntegerColumn, RealColumn

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """A partition of numbers that is at least as fine as a column's bins, with a weight for each part."""

    edges: Floats
    """Edges of the pieces; the last one may be repeated, for a piece that is a single number."""
    first: Integers
    """The first piece of each bin, and the number of pieces at the end."""
    below: Floats
    """The total weight below each edge."""

    @classmethod
    def of(cls, column: IntegerColumn | RealColumn) -> "Pieces | None":
        """The shape of a column's bins; None if values are uniform inside them."""
        shape = None if column.bins is None else column.bins.shape
        if shape is None:
            return None
        bins = np.array(column.edges)
        # Special values have bins of their own, so they divide pieces as well.
        starts = np.union1d(shape.edges[:-1], bins[:-1])
        edges = np.append(starts, bins[-1])
        place = np.searchsorted(shape.edges[1:-1], starts, side="right")
        widths = np.maximum(np.diff(edges), np.finfo(float).tiny)
        of_place = np.bincount(place, widths, minlength=len(shape.weights))
        weights = np.array(shape.weights)[place] * widths / of_place[place]
        first = np.append(np.searchsorted(starts, bins[:-1]), len(starts))
        empty = np.add.reduceat(weights, first[:-1]) <= 0
        weights = np.where(np.repeat(empty, np.diff(first)), widths / widths.sum(), weights)
        return cls(edges, first, np.concatenate([[0.0], np.cumsum(weights)]))

    def choose(self, bins: npt.NDArray[Any], rng: np.random.Generator) -> Integers:
        """Draw a piece of each bin by its weight."""
        low, high = self.below[self.first[bins]], self.below[self.first[bins + 1]]
        drawn = low + (high - low) * rng.random(len(bins))
        found = np.searchsorted(self.below, drawn, side="right") - 1
        # Rounding may reach the end of a bin.
        kept = np.clip(found, self.first[bins], self.first[bins + 1] - 1)
        return np.asarray(kept, np.int64)


def pieces_of(
    pieces: Pieces | None,
    starts: npt.NDArray[Any],
    codes: npt.NDArray[Any],
    rng: np.random.Generator,
    *,
    lower: int = 0,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The starts of all pieces, counted from `lower`, and the piece drawn for each code.

    Without pieces, these are the starts of the bins and the codes. Codes that are not bins come after the
    last piece.
    """
    if pieces is None:
        return starts, codes
    found = codes.astype(np.int64) + (len(pieces.edges) - 1 - len(starts))
    known = codes < len(starts)
    found[known] = pieces.choose(codes[known].astype(np.int64), rng)
    return (pieces.edges[:-1] - lower).astype(starts.dtype), found
