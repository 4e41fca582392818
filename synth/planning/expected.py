"""The expected error of what is delivered, by a small model with fitted constants.

The total variation of a table from the truth has four parts, which add as squares:

- the noise of its columns, where cells below the noise are set to about 0;
- the noise of the relations between them, which errs no more than if part of the relations was lost; where
  pairs of columns are not measured, the error of independent columns;
- the share of this error that the model cannot represent at any budget;
- the error of drawing rows.

The noise of columns and pairs is what least squares would leave of it with all measured tables that
contain them.

The largest error has four parts as well, which add as squares:

- the median of the largest of independent Gaussian errors of cells above it, from the noise alone;
- what a fit moves away from the largest cell where noise hides the others: if tables have the total
  variation f on average, f^2 of that cell. This part is the largest one at small budgets;
- what a model misses of the largest cell at any budget: a quarter of the error that it would make there if
  it missed all cells of a table by the same share;
- the error of drawing the largest cell.

Queries that are not tables follow power laws of the noise of one count. The constants are fitted to
releases of public tables, and checked on others, by benchmarks/quality/forecasts.py.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from scrim.spec.mechanism import PrivateGsd
from scrim.spec.schema import Schema
from scrim.spec.workload import Block, MarginalBlock
from synth.planning.choice import Resolved
from synth.planning.constants import CONSTANTS, DEPENDENCE, POWERS, Constants, MechanismFit
from synth.planning.knowledge import Knowledge
from synth.planning.reference import (
    MEAN_ABSOLUTE,
    NoisyTable,
    ReferenceTable,
    largest_cell,
    largest_of_all,
    likely_largest,
    noise_left,
    sampling_error,
)

MOST_BLOCKS = 100
"""Tables of an item that are forecast, evenly spaced among all."""


@dataclass(frozen=True)
class Expected:
    """Expected errors, as shares of the rows."""

    mean_absolute_error: float
    mean_total_variation: float | None
    """None if nothing is asked that is a table."""
    max_error: float
    lost: float | None = None
    """How far noise alone would move tables of several columns, per the distance of independent columns; None
    if no such table is asked."""


@dataclass(frozen=True)
class ItemExpected:
    """The errors of one item, and how many queries and tables share them."""

    errors: Expected
    queries: int
    tables: int


def of_model(
    resolved: Resolved, schema: Schema, known: Knowledge, *, constants: Constants = CONSTANTS
) -> list[ItemExpected]:
    """The expected errors of each item, for a mechanism that fits a model."""
    release = resolved.release
    forecaster = TableForecaster(
        schema, known, constants, release.mechanism.name, drawn_rows(resolved)
    )
    total = sum(len(blocks) for blocks in resolved.plan.asked.items)
    found = []
    for item, blocks in zip(release.workload, resolved.plan.asked.items, strict=True):
        queries = sum(block.size(schema) for block in blocks)
        if item.type == "marginals":
            most = max(1, MOST_BLOCKS * len(blocks) // total)
            errors = forecaster.of_tables(evenly(blocks, most), queries, tables=len(blocks))
            found.append(ItemExpected(errors, queries, len(blocks)))
        else:
            found.append(ItemExpected(_of_predicates(item.type, known), queries, 0))
    return found


def of_gaussian(
    variances: Sequence[float], blocks: Sequence[Block], schema: Schema, *, rows: int
) -> ItemExpected:
    """The expected errors of answers with known variances, in counts: one for each block of an item."""
    sizes = [block.size(schema) for block in blocks]
    queries, deviations = sum(sizes), [math.sqrt(each) / rows for each in variances]
    summed = [size * each * MEAN_ABSOLUTE for size, each in zip(sizes, deviations, strict=True)]
    alike = Counter(zip(sizes, deviations, strict=True))
    largest = likely_largest(
        [
            NoisyTable(ReferenceTable(size, 1.0), each, times, clipped=False)
            for (size, each), times in alike.items()
        ]
    )
    mean = sum(summed) / queries
    if not all(isinstance(block, MarginalBlock) for block in blocks):
        return ItemExpected(Expected(mean, None, largest), queries, 0)
    lost = [
        error / 2 / dependence(block.attributes, schema)
        for block, error in zip(blocks, summed, strict=True)
        if dependence(block.attributes, schema)
    ]
    far = sum(summed) / 2 / len(summed)
    errors = Expected(mean, far, largest, fmean(lost) if lost else None)
    return ItemExpected(errors, queries, len(sizes))


def together(items: Sequence[ItemExpected]) -> Expected:
    """The errors of all items."""
    queries, tables = sum(each.queries for each in items), sum(each.tables for each in items)
    varied = [(each.tables, each.errors.mean_total_variation) for each in items]
    return Expected(
        sum(each.queries * each.errors.mean_absolute_error for each in items) / queries,
        sum(count * (far or 0.0) for count, far in varied) / tables if tables else None,
        max(each.errors.max_error for each in items),
        _mean_lost(items),
    )


def _mean_lost(items: Sequence[ItemExpected]) -> float | None:
    """The mean over the tables of several columns, as if each item had only these."""
    lost = [(each.tables, each.errors.lost) for each in items if each.errors.lost is not None]
    return (
        sum(count * each for count, each in lost) / sum(count for count, _ in lost)
        if lost
        else None
    )


@dataclass(frozen=True)
class TableForecaster:
    """Forecasts the errors of tables."""

    schema: Schema
    known: Knowledge
    constants: Constants
    mechanism: str
    rows: int
    """Rows that are drawn."""

    @property
    def fit(self) -> MechanismFit:
        """The constants of the mechanism."""
        return self.constants.fits.get(self.mechanism, self.constants.others)

    def of_tables(self, blocks: Sequence[Block], queries: int, *, tables: int) -> Expected:
        """The errors of an item with that many tables and queries, from some of its tables."""
        far = [self.variation(block) for block in blocks]
        mean = sum(far) / len(far)
        absolute = min(1.0, 2 * mean * tables / queries)
        largest = min(max(far), self._largest(blocks, mean, times=tables / len(blocks)))
        lost = [self._lost(b.attributes) for b in blocks if dependence(b.attributes, self.schema)]
        return Expected(absolute, mean, max(absolute, largest), fmean(lost) if lost else None)

    def variation(self, block: Block) -> float:
        """The total variation of one table from the truth."""
        drawn = self.constants.drawn * sampling_error(self._shape(block.attributes), self.rows) / 2
        columns = math.hypot(*map(self._of_column, block.attributes))
        if len(block.attributes) == 1:
            return min(1.0, math.hypot(columns, drawn))
        alone = dependence(block.attributes, self.schema)
        joint = self._of_relations(block.attributes, alone)
        return min(1.0, math.hypot(joint, columns, self.fit.misfit * alone, drawn))

    def _largest(self, blocks: Sequence[Block], mean: float, *, times: float) -> float:
        """The likely largest error of these tables, each of which stands for some alike."""
        noise = likely_largest([self._noisy(block, times) for block in blocks])
        cell = largest_of_all([self._shape(block.attributes) for block in blocks], times)
        misfit = self.fit.misfit * max(self._dependent_cell(block) for block in blocks)
        drawn = self.constants.drawn * math.sqrt(cell / self.rows)
        missing = max(self._missing(block) for block in blocks)
        return math.hypot(max(noise, missing), mean**2 * cell, 2 * misfit / 4, drawn)

    def _lost(self, names: tuple[str, ...]) -> float:
        """How far noise would move a table, and missing pairs, per the distance of independent columns."""
        noise, missing = self.known.of_relations(names, self.schema.sizes)
        alone = dependence(names, self.schema)
        noisy = (1 - missing) * self._left(names, noise) + missing * alone
        return math.hypot(noisy, *map(self._of_column, names)) / alone

    def _of_relations(self, names: Sequence[str], alone: float) -> float:
        """What noise and missing pairs leave of the error of independent columns."""
        noise, missing = self.known.of_relations(tuple(names), self.schema.sizes)
        noisy = (1 - missing) * self._left(names, noise)
        return _smaller(noisy, self.constants.lost * alone) + missing * alone

    def _missing(self, block: Block) -> float:
        """The error of the largest cell where pairs of columns are not measured: each cell moves by as large
        a part of its rows as all cells together.
        """
        if len(block.attributes) == 1:
            return 0.0
        missing = self.known.of_relations(block.attributes, self.schema.sizes)[1]
        return 2 * missing * self._dependent_cell(block)

    def _dependent_cell(self, block: Block) -> float:
        """The largest cell, as far as it depends on relations between columns."""
        names = block.attributes
        return dependence(names, self.schema) * largest_cell(self._shape(names))

    def _of_column(self, name: str) -> float:
        noise = self.known.of_column(name, self.schema.sizes[name])
        return self._left((name,), 1.0 if noise is None else noise)

    def _left(self, names: Sequence[str], noise: float) -> float:
        return noise_left(self._shape(names), self.fit.noise * noise) / 2

    def _shape(self, names: Sequence[str]) -> ReferenceTable:
        sizes = self.schema.sizes
        return ReferenceTable(math.prod(sizes[name] for name in names), self.constants.spread)

    def _noisy(self, block: Block, times: float) -> NoisyTable:
        """The noise of a table's cells."""
        names, sizes = block.attributes, self.schema.sizes
        shape = self._shape(names)
        columns = [
            (self.known.of_column(name, sizes[name]) or 0.0) * sizes[name] / shape.cells
            for name in names
        ]
        relations = self.known.of_relations(names, sizes)[0] if len(names) > 1 else 0.0
        return NoisyTable(shape, self.fit.peak * math.hypot(relations, *columns), times)


def dependence(names: Sequence[str], schema: Schema) -> float:
    """How far such a table is from independent columns."""
    logs = sorted(math.log(schema.sizes[name]) for name in names)
    return 1 - math.exp(-DEPENDENCE * sum(logs[:-1]))


def evenly(blocks: Sequence[Block], most: int) -> Sequence[Block]:
    """At most that many of the blocks, evenly spaced."""
    return blocks[:: math.ceil(len(blocks) / most)]


def drawn_rows(resolved: Resolved) -> int:
    """How many different rows are released."""
    mechanism, rows = resolved.release.mechanism, resolved.release.synthetic_rows
    assert rows is not None
    return min(rows, mechanism.rows) if isinstance(mechanism, PrivateGsd) else rows


def _of_predicates(kind: str, known: Knowledge) -> Expected:
    """The errors of queries that are not tables."""
    mean, largest = POWERS.get(kind, POWERS["ranges"])
    return Expected(mean.at(known.whole), None, largest.at(known.whole))


def _smaller(first: float, second: float) -> float:
    """About the smaller of the two, without a corner."""
    if not first or not second:
        return 0.0
    return first / math.sqrt(1 + (first / second) ** 2)
