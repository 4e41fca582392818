"""How released rows are compared with true ones."""

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import DataSet
from synth.queries import Marginal, QuerySet

RARE_SHARE, RARE_ROWS = 0.005, 10
"""A rare category has a smaller share of the rows than this, and at least this many."""
MAX_PAIRS, PAIR_SEED = 2_000, 0

Fractions = NDArray[np.float64]


@dataclass(frozen=True)
class Variation:
    """Total variation distances of two-way marginals: 0 is no difference, 1 is the largest."""

    mean: float
    max: float


def pairs_below(queries: QuerySet, data: DataSet) -> QuerySet:
    """The pairs of columns that are asked about together; a public random choice where they are many."""
    together = {
        pair
        for block in queries.blocks
        for pair in combinations(
            [name for name in data.domain.names if name in block.attributes], 2
        )
    }
    pairs = sorted(together)
    if len(pairs) > MAX_PAIRS:
        chosen = np.random.default_rng(PAIR_SEED).choice(len(pairs), MAX_PAIRS, replace=False)
        pairs = [pairs[position] for position in sorted(chosen)]
    return QuerySet(Marginal.of(pair, data.domain) for pair in pairs)


def single_columns(queries: QuerySet, data: DataSet) -> QuerySet:
    """The one-way marginals of the columns that are asked about."""
    asked = {name for block in queries.blocks for name in block.attributes}
    return QuerySet(Marginal.of([name], data.domain) for name in data.domain.names if name in asked)


def fractions_of(queries: QuerySet, data: DataSet) -> Fractions:
    """What some rows answer."""
    return queries.count(data.table) / data.rows


def total_variation(queries: QuerySet, found: Fractions, true_fractions: Fractions) -> Variation:
    """Half the summed differences of each marginal."""
    difference = np.abs(found - true_fractions)
    distances = np.add.reduceat(difference, queries.offsets[:-1]) / 2
    return Variation(float(distances.mean()), float(distances.max()))


def rare_category_error(found: Fractions, true_fractions: Fractions, *, rows: int) -> float | None:
    """The median relative error of the shares of rare categories; None where there are none."""
    # Counts were divided by the rows, so what was a whole number may be a little less.
    counts = np.round(true_fractions * rows)
    is_rare = (counts >= RARE_ROWS) & (true_fractions < RARE_SHARE)
    if not is_rare.any():
        return None
    error = np.abs(found - true_fractions)[is_rare] / true_fractions[is_rare]
    return float(np.median(error))


def restart_peak() -> None:
    """Count the peak of the memory from here on, where Linux allows it."""
    if (switch := Path("/proc/self/clear_refs")).exists():
        switch.write_text("5")


def peak_mebibytes() -> float | None:
    """The most memory that this process has had resident; None where it cannot be read."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024
