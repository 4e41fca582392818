"""Counting rows in halfspaces exactly, with integers in doubles, which are exact up to 2^53.

Categories, and whether numbers are missing, are codes whose weights are looked up instead of
multiplied. Codes of several columns are merged into one, so that there are fewer lookups.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Attribute
from scrim.spec.workload.halfspaces import coordinates
from synth.compiled import kept_on_disk
from synth.queries.coordinates import IS_MISSING, PLACE, coordinate_starts, span_of
from synth.queries.features import PLACES, are_missing, place
from synth.queries.halfspace_draws import Batch
from synth.queries.marginal_counter import ROWS_WORTH_A_THREAD

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MERGED_CODES = 256
"""Largest number of merged codes."""
HALFSPACES_AT_ONCE = 128
"""Number of halfspaces whose weights fit in the processor's caches."""


@kept_on_disk
def _count(
    codes: Integers,
    looked_up: Floats,
    steps: Floats,
    slopes: Floats,
    thresholds: Floats,
    totals: Integers,
) -> None:
    """Count rows; `codes` and `steps` have one row per part, the others one column per halfspace."""
    sums = np.empty(len(thresholds))
    for row in range(codes.shape[1]):
        sums[:] = 0.0
        for part in range(len(codes)):
            weights = looked_up[codes[part, row]]
            for i in range(len(sums)):
                sums[i] += weights[i]
        for part in range(len(steps)):
            number, weights = steps[part, row], slopes[part]
            for i in range(len(sums)):
                sums[i] += number * weights[i]
        for i in range(len(sums)):
            totals[i] += sums[i] <= thresholds[i]


@dataclass(frozen=True)
class MergedColumns:
    """Columns whose codes are merged into one."""

    columns: tuple[Attribute, ...]
    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of merged codes."""
        return int(np.prod(self.sizes))

    def merge(self, numbers: Mapping[str, NDArray[Any]]) -> Integers:
        """The merged code of each row, the last column's varying fastest."""
        codes = np.zeros((), np.int64)
        for column, size in zip(self.columns, self.sizes, strict=True):
            mine = numbers[column.name]
            codes = codes * size + (
                mine.astype(np.int64)
                if isinstance(column, LabelledColumn)
                else are_missing(mine, column.line.lower)
            )
        return codes

    def weights(self, weights: NDArray[np.int32], starts: Mapping[str, int]) -> Floats:
        """The contribution of each merged code to the sums: one row per code."""
        added = np.zeros((1, len(weights)))
        for column, size in zip(self.columns, self.sizes, strict=True):
            start = starts[column.name]
            if isinstance(column, LabelledColumn):
                mine = weights[:, start : start + size].T.astype(np.float64)
            else:
                missing = weights[:, start + IS_MISSING].astype(np.float64)
                mine = np.stack([np.zeros_like(missing), missing])
            added = (added[:, None, :] + mine[None, :, :]).reshape(-1, len(weights))
        return added * PLACES


class HalfspaceCounting:
    """A plan for counting rows in halfspaces."""

    def __init__(self, columns: Sequence[Attribute]) -> None:
        self._starts = coordinate_starts(columns)
        self._parts = _parts(columns)
        self._numeric = [c for c in columns if not isinstance(c, LabelledColumn)]

    def prepare(self, numbers: Mapping[str, NDArray[Any]]) -> "PreparedRows":
        """Convert rows to the form in which they are counted."""
        rows = len(next(iter(numbers.values())))
        codes = np.empty((len(self._parts), rows), np.int64)
        first = 0
        for i, part in enumerate(self._parts):
            codes[i] = first + part.merge(numbers)
            first += part.size
        steps = np.empty((len(self._numeric), rows))
        for i, column in enumerate(self._numeric):
            steps[i] = place(numbers[column.name], column.line.lower, span_of(column.line))
        return PreparedRows(codes, steps)

    def count(self, rows: "PreparedRows", batch: Batch) -> Integers:
        """The number of rows in each halfspace."""
        totals = np.zeros(len(batch.thresholds), np.int64)

        def count(start: int) -> None:
            some = slice(start, start + HALFSPACES_AT_ONCE)
            weights = batch.weights[some]
            slopes = [weights[:, self._starts[c.name] + PLACE] for c in self._numeric]
            looked_up = [part.weights(weights, self._starts) for part in self._parts]
            nothing = np.zeros((0, len(weights)))
            _count(
                rows.codes,
                np.concatenate([nothing, *looked_up]),
                rows.steps,
                np.stack(slopes).astype(np.float64) if slopes else nothing,
                batch.thresholds[some].astype(np.float64),
                totals[some],
            )

        threads = cpu_count() if rows.codes.shape[1] >= ROWS_WORTH_A_THREAD else 1
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(count, range(0, len(totals), HALFSPACES_AT_ONCE)))
        return totals


@dataclass(frozen=True)
class PreparedRows:
    """Merged codes and steps of numbers: one line per part, one column per row."""

    codes: Integers
    steps: Floats


def _parts(columns: Sequence[Attribute]) -> list[MergedColumns]:
    parts: list[MergedColumns] = []
    for column in columns:
        if not isinstance(column, LabelledColumn) and not column.apart:
            continue
        size = coordinates(column)
        if parts and parts[-1].size * size <= MERGED_CODES:
            last = parts.pop()
            parts.append(MergedColumns((*last.columns, column), (*last.sizes, size)))
        else:
            parts.append(MergedColumns((column,), (size,)))
    return parts
