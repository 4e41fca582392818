"""Refinement of sampled rows: codes are redrawn so that the cross tables get closer to the mixture's.

Rows drawn one by one have sampling error in every cell. But any code of a row may be redrawn from the
row's own component, and of several such replacements the best may be taken: the one that most reduces
the squared distance between the tables of the rows and those of the mixture. A comparison costs a few
lookups. It uses only the released mixture and never a private row.
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
"""Numbers of attributes of the refined cross tables. The three limits apply to each order."""
MAX_REFINED_CELLS = 2**22
MAX_REFINED_TABLES = 1200
"""Limits of the total cells, and of the number, of the refined tables of one order."""
MAX_COUNTED = 300_000_000
"""Limit of tables times rows. With more rows the sampling error is small anyway."""
MAX_WORK = 250_000_000
"""Limit of cell lookups for comparisons, for any number of rows: about two seconds."""
WORK_PER_CHOICE = 3000
"""Fixed cost of a choice, in lookups."""
ROWS_IN_A_TURN = 1000
"""Number of rows tried before moving to the next attribute."""
CHOICES = 25
"""Number of replacements from which one is chosen. More give better but fewer replacements."""
WORTHWHILE = 0.1
"""Smallest share of choices that must have improved the tables for another round."""
MIN_EXPECTED = 1.0
"""Smallest expected number of rows of a compared cell. The integer nearest to a tenth of a row is zero,
so comparing rare cells would empty all of them."""


class DrawnMixture(Protocol):
    """The part of a mixture's interface that refinement needs."""

    @property
    def domain(self) -> Domain:
        """The attributes of the rows."""

    def answer(self, queries: QuerySet) -> Answers:
        """Answers as fractions."""

    def codes_at(
        self, name: str, component: NDArray[np.int64], points: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """The codes at which the components' cumulative shares pass the given points in [0, 1]."""


def refine(
    codes: NDArray[np.int64],
    component: NDArray[np.int64],
    *,
    mixture: DrawnMixture,
    rng: np.random.Generator,
) -> None:
    """Replace codes by others drawn from the row's component; `codes` has one column per row."""
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
    """The positions of rows in the tables that contain a given attribute."""

    offsets: NDArray[np.float64]
    """The first cell of each table."""
    strides: NDArray[np.float64]
    """The stride of each attribute in each table. The numbers are integers stored as doubles, which are
    exact and have fast products."""

    def cells(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell of each row in each table."""
        return (rows @ self.strides + self.offsets).astype(np.int64)


@dataclass(frozen=True)
class CrossTables:
    """Cross tables of rows, compared with those of a mixture; cells are numbered across all tables."""

    around: list[Addresses]
    """The tables that contain each attribute."""
    weight: NDArray[np.float32]
    """The weight of a row in each cell: 0 if the cell is too rare to be compared."""
    excess: NDArray[np.float32]
    """The number of excess rows in each cell, compared with the mixture."""

    @classmethod
    def of(cls, codes: NDArray[np.int64], mixture: DrawnMixture) -> Self:
        """Build the tables of the rows."""
        rows = codes.shape[1]
        blocks = choose_tables(mixture.domain, rows)
        counter = Marginal.counter(blocks)
        counter.add(dict(zip(mixture.domain.names, codes, strict=True)))
        expected = mixture.answer(QuerySet(blocks)).values * rows
        weight = (expected >= MIN_EXPECTED).astype(np.float32)
        excess = weight * (np.concatenate(counter.totals()) - expected)
        return cls(_addresses(blocks, mixture.domain), weight, excess.astype(np.float32))

    def having(self, attribute: int) -> int:
        """The number of tables that contain an attribute."""
        return len(self.around[attribute].offsets)

    def take_best(
        self,
        codes: NDArray[np.int64],
        attribute: int,
        *,
        rows: NDArray[np.int64],
        redrawn: NDArray[np.int64],
    ) -> bool:
        """Make the best replacement, if any brings the tables closer; return whether one did.

        One at a time, because two simultaneous replacements might both fill the same gap.
        """
        around = self.around[attribute]
        present = codes[:, rows].T
        replaced = present.copy()
        replaced[:, attribute] = redrawn
        before, after = around.cells(present), around.cells(replaced)
        # Half the change of the squared distance, (e - 1)² + (f + 1)² - e² - f² in each table. Rare
        # cells would not add the 1; they do here, so that rows enter and leave them equally rarely.
        change = (self.excess[after] - self.excess[before]).sum(axis=1) + self.having(attribute)
        best = int(change.argmin())
        if change[best] >= 0:
            return False
        self.excess[before[best]] -= self.weight[before[best]]
        self.excess[after[best]] += self.weight[after[best]]
        codes[attribute, rows[best]] = redrawn[best]
        return True


def choose_tables(domain: Domain, rows: int) -> list[Marginal]:
    """Choose the tables of each order, over as many of the smallest attributes as the limits allow."""
    by_size = sorted(domain.names, key=lambda name: domain.size_of[name])
    sizes = [domain.size_of[name] for name in by_size]
    max_tables = min(MAX_REFINED_TABLES, MAX_COUNTED // rows)
    chosen: list[tuple[str, ...]] = []
    for order in ORDERS:
        affordable = by_size[: _affordable(sizes, order, max_tables=max_tables)]
        chosen.extend(combinations(affordable, order))
    return [Marginal.of(names, domain) for names in chosen]


def _affordable(sizes: Sequence[int], order: int, *, max_tables: int) -> int:
    """The number of leading attributes for which all tables of an order are within the limits."""
    # Total cells of all tables of 0, 1, ... of the attributes so far.
    cells = [1, *(0 for _ in range(order))]
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
