"""The expected error of what is delivered, by a small model with fitted constants.

The total variation of a table from the truth has four parts, which add as squares:

- the noise of the measured tables that it contains, where cells below the noise are set to about 0;
- where pairs of its columns are not measured, the error of independent columns; a small share of it where
  rounds may measure them, since they measure the worst first;
- the share of it that the model cannot represent at any budget;
- the error of drawing rows.

Queries that are not tables follow power laws of the noise of one count. The constants are fitted to
releases of public tables, and checked on others, by benchmarks/quality/forecasts.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from scrim.spec.mechanism import PrivateGsd
from scrim.spec.schema import Schema
from scrim.spec.workload import Block
from synth.planning.choice import Resolved
from synth.planning.constants import CONSTANTS, POWERS, Constants, MechanismFit
from synth.planning.knowledge import Knowledge
from synth.planning.reference import MEAN_ABSOLUTE, ReferenceTable, noise_left, sampling_error

MOST_BLOCKS = 100
"""Tables of an item that are forecast, evenly spaced among all."""


@dataclass(frozen=True)
class Expected:
    """Expected errors, as shares of the rows."""

    mean_absolute_error: float
    mean_total_variation: float | None
    """None if nothing is asked that is a table."""
    max_error: float


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
    teller = Teller(schema, known, constants, release.mechanism.name, drawn_rows(resolved))
    total = sum(len(blocks) for blocks in resolved.plan.asked.items)
    found = []
    for item, blocks in zip(release.workload, resolved.plan.asked.items, strict=True):
        queries = sum(block.size(schema) for block in blocks)
        if item.type == "marginals":
            most = max(1, MOST_BLOCKS * len(blocks) // total)
            errors = teller.of_tables(blocks, queries, most=most)
            found.append(ItemExpected(errors, queries, len(blocks)))
        else:
            found.append(ItemExpected(_of_predicates(item.type, known), queries, 0))
    return found


def of_gaussian(
    variances: Sequence[float], sizes: Sequence[int], rows: int, *, are_tables: bool
) -> ItemExpected:
    """The expected errors of answers with known variances, in counts: one for each block of an item."""
    queries, deviations = sum(sizes), [math.sqrt(each) / rows for each in variances]
    summed = [size * each * MEAN_ABSOLUTE for size, each in zip(sizes, deviations, strict=True)]
    largest = max(deviations) * math.sqrt(2 * math.log(1 + queries))
    far = sum(summed) / 2 / len(summed) if are_tables else None
    errors = Expected(sum(summed) / queries, far, largest)
    return ItemExpected(errors, queries, len(sizes) if are_tables else 0)


def together(items: Sequence[ItemExpected]) -> Expected:
    """The errors of all items."""
    queries, tables = sum(each.queries for each in items), sum(each.tables for each in items)
    varied = [(each.tables, each.errors.mean_total_variation) for each in items]
    return Expected(
        sum(each.queries * each.errors.mean_absolute_error for each in items) / queries,
        sum(count * (far or 0.0) for count, far in varied) / tables if tables else None,
        max(each.errors.max_error for each in items),
    )


@dataclass(frozen=True)
class Teller:
    """Forecasts tables."""

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

    def of_tables(self, blocks: Sequence[Block], queries: int, *, most: int) -> Expected:
        """The errors of the tables of an item, from some of them."""
        step = math.ceil(len(blocks) / most)
        far = [self.variation(block) for block in blocks[::step]]
        mean = sum(far) / len(far)
        noise = max(self._noise_of(block) for block in blocks[::step])
        absolute = min(1.0, 2 * mean * len(blocks) / queries)
        return Expected(absolute, mean, max(absolute, self._largest(far, noise, queries)))

    def variation(self, block: Block) -> float:
        """The total variation of one table from the truth."""
        shape = self._shape(block.attributes)
        drawn = self.constants.drawn * sampling_error(shape, self.rows) / 2
        if len(block.attributes) == 1:
            return min(1.0, math.hypot(self._of_column(*block.attributes), drawn))
        noisy, named = self._of_pairs(block)
        selected = self.known.covered * named
        columns = (1 - selected) * math.hypot(*map(self._of_column, block.attributes))
        alone = dependence(block.attributes, self.schema, self.constants)
        missed = self.constants.unmeasured * (named - selected) + (1 - named)
        joint = selected * noisy + missed * alone
        return min(1.0, math.hypot(joint, columns, self.fit.misfit * alone, drawn))

    def _of_pairs(self, block: Block) -> tuple[float, float]:
        """The error that noise leaves if the pairs are measured, and the share of them that may be."""
        pairs = list(combinations(block.attributes, 2))
        noises = [(pair, self._of_pair(block, pair)) for pair in pairs]
        left = [self._left(pair, noise) for pair, noise in noises if noise is not None]
        if not left:
            return 0.0, 0.0
        return sum(left) / len(left) * math.sqrt(len(block.attributes) - 1), len(left) / len(pairs)

    def _of_pair(self, block: Block, pair: tuple[str, ...]) -> float | None:
        return self.known.noise.get(block.attributes, self.known.of_pair(pair))

    def _of_column(self, name: str) -> float:
        return self._left((name,), self.known.columns.get(name, 1.0))

    def _left(self, names: Sequence[str], noise: float) -> float:
        return noise_left(self._shape(names), self.fit.noise * noise) / 2

    def _shape(self, names: Sequence[str]) -> ReferenceTable:
        sizes = self.schema.sizes
        return ReferenceTable(math.prod(sizes[name] for name in names), self.constants.spread)

    def _noise_of(self, block: Block) -> float:
        """The smallest noise that tells about a table."""
        pairs = [self._of_pair(block, pair) for pair in combinations(block.attributes, 2)]
        found = [noise for noise in pairs if noise is not None]
        return min([*found, *(self.known.columns.get(name, 1.0) for name in block.attributes)])

    def _largest(self, far: Sequence[float], noise: float, queries: int) -> float:
        """The largest error of a cell: noise at the far end, and never more than its table's variation."""
        spread = noise * math.sqrt(2 * math.log(1 + queries))
        peak = _smaller(self.fit.peak * spread, max(far))
        return min(1.0, peak + self.constants.peak * sum(far) / len(far))


def dependence(names: Sequence[str], schema: Schema, constants: Constants) -> float:
    """How far such a table is from independent columns."""
    logs = sorted(math.log(schema.sizes[name]) for name in names)
    return 1 - math.exp(-constants.dependence * sum(logs[:-1]))


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
