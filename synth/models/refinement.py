"""Rows nearer to their mixture: codes are drawn again where that brings the cross tables nearer.

Rows that are drawn one by one miss the share of every cell by chance. But any code of a row may be
drawn again from the row's own component, and of several such replacements the best may be taken: the
one that most lowers the squared distance between the tables of the rows and those of the mixture. A
comparison costs a few lookups. Only the released mixture is looked at, never a private row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from synth.domain import Domain
from synth.models.base import Answers
from synth.queries import Marginal, QuerySet

ORDERS = (1, 2, 3)
"""Cross tables of so many attributes are brought nearer. The three limits hold for each of them."""
MAX_REFINED_CELLS = 2**22
MAX_REFINED_TABLES = 1200
MAX_COUNTED = 300_000_000
"""Tables times rows. Where there are more rows, their sampling error is small anyhow."""
MAX_WORK = 250_000_000
"""How many cells are looked up for comparing, whatever the number of rows: about two seconds."""
WORK_PER_CHOICE = 3000
"""Lookups that take as long as what a choice costs besides its lookups."""
ROWS_IN_A_TURN = 1000
"""How many rows are tried before the next attribute has its turn."""
CHOICES = 25
"""Of how many replacements one is taken. More are a better choice, but fewer replacements."""
WORTHWHILE = 0.1
"""How often one must have been worth taking for another round."""
MIN_EXPECTED = 1.0
"""How many rows a cell must expect to be compared. Nearest to a tenth of a row is no row at all:
comparing rare cells would empty every one of them."""


class DrawnMixture(Protocol):
    """What refinement needs of the mixture that rows were drawn from."""

    @property
    def domain(self) -> Domain:
        """The attributes of the rows."""

    def answer(self, queries: QuerySet) -> Answers:
        """Answers as fractions."""

    def codes_at(
        self, name: str, component: NDArray[np.int64], points: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """The codes at which the cumulative shares of components pass points between 0 and 1."""


def refine(
    codes: NDArray[np.int64],
    component: NDArray[np.int64],
    *,
    mixture: DrawnMixture,
    rng: np.random.Generator,
) -> None:
    """Replace codes, of which each row is a column, by others that its component might have drawn."""
    tables = CrossTables.of(codes, mixture)
    work, taken, choices = 0, 1, 1
    while taken > WORTHWHILE * choices:
        taken, choices = 0, 0
        for attribute, name in enumerate(mixture.domain.names):
            if work > MAX_WORK:
                return
            tried = rng.integers(codes.shape[1], size=ROWS_IN_A_TURN)
            redrawn = mixture.codes_at(name, component[tried], rng.random(ROWS_IN_A_TURN))
            differs = np.flatnonzero(redrawn != codes[attribute, tried])
            for start in range(0, len(differs), CHOICES):
                choice = differs[start : start + CHOICES]
                taken += tables.take_best(
                    codes, attribute, rows=tried[choice], redrawn=redrawn[choice]
                )
                choices += 1
                work += WORK_PER_CHOICE + 2 * len(choice) * tables.having(attribute)


@dataclass(frozen=True)
class Addresses:
    """Where rows are in the tables that have a certain attribute."""

    offsets: NDArray[np.float64]
    """Where each table begins."""
    strides: NDArray[np.float64]
    """By how many cells one code of each attribute moves a row in each table. Whole numbers are exact
    in double precision, and their products are fast."""

    def cells(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell of each row in each table."""
        return (rows @ self.strides + self.offsets).astype(np.int64)


@dataclass(frozen=True)
class CrossTables:
    """Cross tables of rows, compared with those of a mixture; cells are numbered through."""

    around: list[Addresses]
    """The tables that have each attribute."""
    weight: NDArray[np.float32]
    """How much a row counts in each cell: nothing where the cell is too rare to be compared."""
    excess: NDArray[np.float32]
    """How many rows each cell has too many."""

    @classmethod
    def of(cls, codes: NDArray[np.int64], mixture: DrawnMixture) -> Self:
        """The tables of some rows."""
        rows = codes.shape[1]
        blocks = choose_tables(mixture.domain, rows)
        counter = Marginal.counter(blocks)
        counter.add(dict(zip(mixture.domain.names, codes, strict=True)))
        expected = mixture.answer(QuerySet(blocks)).values * rows
        weight = (expected >= MIN_EXPECTED).astype(np.float32)
        excess = weight * (np.concatenate(counter.totals()) - expected)
        return cls(_addresses(blocks, mixture.domain), weight, excess.astype(np.float32))

    def having(self, attribute: int) -> int:
        """How many tables have an attribute."""
        return len(self.around[attribute].offsets)

    def take_best(
        self,
        codes: NDArray[np.int64],
        attribute: int,
        *,
        rows: NDArray[np.int64],
        redrawn: NDArray[np.int64],
    ) -> bool:
        """Make the one replacement, if any, that brings the tables nearest to the mixture's.

        One at a time, because two replacements do not know of each other: both might fill one gap.
        """
        around = self.around[attribute]
        present = codes[:, rows].T
        replaced = present.copy()
        replaced[:, attribute] = redrawn
        before, after = around.cells(present), around.cells(replaced)
        # Half the change of the squared distance, (e - 1)² + (f + 1)² - e² - f² in each table. Rare
        # cells would add no 1; they do here, so that rows enter and leave them equally seldom.
        change = (self.excess[after] - self.excess[before]).sum(axis=1) + self.having(attribute)
        best = int(change.argmin())
        if change[best] >= 0:
            return False
        self.excess[before[best]] -= self.weight[before[best]]
        self.excess[after[best]] += self.weight[after[best]]
        codes[attribute, rows[best]] = redrawn[best]
        return True


def choose_tables(domain: Domain, rows: int) -> list[Marginal]:
    """The tables of each order among as many attributes, the smallest first, as the limits allow."""
    by_size = sorted(domain.names, key=lambda name: domain.size_of[name])
    sizes = [domain.size_of[name] for name in by_size]
    max_tables = min(MAX_REFINED_TABLES, MAX_COUNTED // rows)
    chosen: list[tuple[str, ...]] = []
    for order in ORDERS:
        affordable = by_size[: _affordable(sizes, order, max_tables=max_tables)]
        chosen.extend(combinations(affordable, order))
    return [Marginal.of(names, domain) for names in chosen]


def _affordable(sizes: Sequence[int], order: int, *, max_tables: int) -> int:
    """How many of the attributes, from the first, can have all their tables of an order."""
    cells = [1, *(0 for _ in range(order))]  # of all tables of 0, 1, ... of the attributes so far
    for attributes, size in enumerate(sizes):
        for k in range(order, 0, -1):
            cells[k] += size * cells[k - 1]
        if cells[order] > MAX_REFINED_CELLS or comb(attributes + 1, order) > max_tables:
            return attributes
    return len(sizes)


def _addresses(blocks: Sequence[Marginal], domain: Domain) -> list[Addresses]:
    offsets = QuerySet(blocks).offsets[:-1].astype(np.float64)
    strides = np.zeros((len(domain.names), len(blocks)))
    for table, block in enumerate(blocks):
        stride = 1
        for name, size in zip(reversed(block.attributes), reversed(block.sizes), strict=True):
            strides[domain.names.index(name), table] = stride
            stride *= size
    having = [np.flatnonzero(of_attribute) for of_attribute in strides]
    return [Addresses(offsets[tables], strides[:, tables]) for tables in having]
