"""Hierarchical tables of a mixture over whole groups, as matrix products.

In one component everything is independent: the size m of a group, its columns, and the individuals
at its places. Let g_j = P(m >= j) be the probability that place j is occupied, and t_j the probability
that the individual there is in a cell. Per group, a cell then has (Liu, Wu 2022, section 4.2)

    sum_j g_j t_j               individuals,
    V_1                         groups, where V_j = g_j t_j + (1 - t_j) V_{j+1} and V_{M+1} = 0:

the paper's sum over m of P(m) (1 - prod_{j <= m} (1 - t_j)), written with sums of positive numbers and
without divisions. Either is multiplied by the probabilities of the group's own cells and averaged over
the components: one matrix product for all tables with the same attributes of individuals. In tables
without such attributes, the last attribute takes their place: one product for all tables that end with it.

Arrays have one row for each code or cell and one column for each component. So the cells of all tables
are products of whole rows, in a few operations, for any number of tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Protocol, cast

import numpy as np
import torch
from torch.nn.functional import embedding
from torch.utils.checkpoint import checkpoint

from scrim.spec.workload.hierarchical import Level
from synth.domain import SIZE, Domain, at_place
from synth.planning.memory import KEPT_PLANS, KEPT_TABLES, MAX_ENTRIES, linked_entries
from synth.queries.readable import Products


class LinkedTable(Protocol):
    """The attributes of a table of linked rows, and the level at which it counts."""

    @property
    def level(self) -> Level:
        """Whether groups or individuals are counted."""

    @property
    def of_groups(self) -> tuple[str, ...]:
        """The attributes that describe groups."""

    @property
    def of_individuals(self) -> tuple[str, ...]:
        """The attributes that describe individuals."""


@dataclass(frozen=True)
class TableStack:
    """Tables of one level that have the same attributes of individuals: one matrix product."""

    level: str
    own: tuple[str, ...]
    last: str | None
    """The attribute of groups that takes the place of attributes of individuals, if there are none."""
    of_groups: tuple[tuple[str, ...], ...]
    """The other attributes of each table."""
    positions: tuple[int, ...]
    """The position of each table among all requested tables."""

    def heights(self, domain: Domain) -> list[int]:
        """The number of cells of each table's attributes of groups."""
        return [prod(domain.size_of[name] for name in names) for names in self.of_groups]

    def width(self, domain: Domain) -> int:
        """The number of kinds of individuals."""
        return prod(domain.size_of[at_place(name, 0)] for name in self.own)

    def entries(self, domain: Domain) -> int:
        """Factors and intermediate values of one component's part of the product."""
        return linked_entries(
            places=domain.size_of[SIZE],
            order=len(self.own),
            kinds=self.width(domain),
            cells=[*self.heights(domain), domain.size_of[self.last] if self.last else 0],
        )


class Layout:
    """The rows of the codes of groups and of individuals; the last row is all ones."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        starts = accumulate(domain.sizes, initial=0)
        self.of_groups = {
            name: range(start, start + size)
            for name, size, start in zip(domain.names, domain.sizes, starts, strict=False)
        }
        self.own: dict[str, range] = {}
        by_place: list[Sequence[int]] = []
        for name in domain.names:
            # Only the first place is listed; the names of the other places are derived from it.
            if not name.endswith(at_place("", 0)):
                continue
            own = name.removesuffix(at_place("", 0))
            places = [self.of_groups[at_place(own, j)] for j in range(domain.size_of[SIZE])]
            self.own[own] = range(len(by_place), len(by_place) + domain.size_of[name])
            by_place += zip(*places, strict=True)
        self._by_place = torch.tensor(by_place, dtype=torch.int64).flatten()

    def rows(self, mixture: Products) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The probabilities of codes of groups, of each place being occupied, and of codes at each place."""
        columns = mixture.probabilities.T
        ones = columns.new_ones((1, columns.shape[1]))
        sizes = self.of_groups[SIZE]
        taken = columns[sizes.start : sizes.stop].flip(0).cumsum(0).flip(0)
        own = embedding(self._by_place.to(columns.device), columns).reshape(-1, taken.numel())
        return torch.cat([columns, ones]), taken, torch.cat([own, own.new_ones((1, own.shape[1]))])


class TableProducts:
    """Stacks whose cells are computed together; those that count groups come first."""

    def __init__(self, stacks: Sequence[TableStack], layout: Layout) -> None:
        self._heights = [sum(stack.heights(layout.domain)) for stack in stacks]
        self._widths = [stack.width(layout.domain) for stack in stacks]
        of_groups = layout.of_groups
        self._cells = _factors(
            [[of_groups[name] for name in names] for stack in stacks for names in stack.of_groups],
            ones=sum(layout.domain.sizes),
        )
        self._kinds = _factors(
            [[layout.own[name] for name in stack.own] for stack in stacks],
            ones=sum(map(len, layout.own.values())),
        )
        self._last = [of_groups[stack.last] if stack.last else range(0) for stack in stacks]
        self._codes = torch.tensor([c for codes in self._last for c in codes], dtype=torch.int64)
        groups = [w for w, b in zip(self._widths, stacks, strict=True) if b.level == "group"]
        self._levels = [sum(groups), sum(self._widths) - sum(groups)]

    def products(
        self, columns: torch.Tensor, taken: torch.Tensor, individuals: torch.Tensor
    ) -> list[torch.Tensor]:
        """The product of each stack, summed over components: one row per cell of the group attributes."""
        cells = torch.split(_multiplied(columns, self._cells), self._heights)
        chances = _multiplied(individuals, self._kinds).reshape(-1, *taken.shape)
        # Split and unbound, not indexed: the gradient of an index is as large as the whole tensor.
        found, members = torch.split(chances, self._levels)
        kinds = torch.cat([_found(found, taken), (members * taken).sum(1)])
        codes = embedding(self._codes.to(columns.device), columns)
        lasts = torch.split(codes, [len(codes) for codes in self._last])
        sides = [
            own * last if len(last) else own
            for own, last in zip(torch.split(kinds, self._widths), lasts, strict=True)
        ]
        return [of_groups @ side.T for of_groups, side in zip(cells, sides, strict=True)]


def _factors(tables: Sequence[Sequence[range]], *, ones: int) -> torch.Tensor:
    """The rows whose products are the cells of the tables: one line per factor."""
    order = max(1, *(len(axes) for axes in tables))
    parts = []
    for axes in tables:
        cells = np.full((order, prod(map(len, axes))), ones)
        for line, codes in zip(cells, np.meshgrid(*axes, indexing="ij"), strict=False):
            line[:] = codes.ravel()
        parts.append(cells)
    return torch.from_numpy(np.concatenate(parts, axis=1))


def _multiplied(rows: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """Products of rows. They are looked up as embeddings, which have the fastest gradient."""
    first, *others = factors.to(rows.device)
    result = embedding(first, rows)
    for factor in others:
        result = result * embedding(factor, rows)
    return result


def _found(chances: torch.Tensor, taken: torch.Tensor) -> torch.Tensor:
    """The probability that a group contains an individual of each kind: V_1."""
    *before, last = chances.unbind(1)
    found = taken[-1] * last
    for place in reversed(range(len(before))):
        found = torch.lerp(found, taken[place], before[place])
    return found


class HierarchicalProducts:
    """A plan for answering tables on any mixture over the groups of a schema."""

    def __init__(self, blocks: Sequence[LinkedTable], domain: Domain) -> None:
        self._domain = domain
        self._layout = Layout(domain)
        self._stacks = sorted(_stacks_of(blocks), key=lambda stack: stack.level)
        entries = [stack.entries(domain) for stack in self._stacks]
        self._entries, self._largest = sum(entries), max(entries)
        self._parts: dict[int, list[TableProducts]] = {}

    def answers(self, mixture: Products) -> torch.Tensor:
        """All cells of all tables, in their order."""
        components = len(mixture.probabilities)
        is_large = components * self._entries > KEPT_TABLES * MAX_ENTRIES
        recompute = is_large and torch.is_grad_enabled()
        found: dict[int, torch.Tensor] = {}
        for stack, cells in zip(self._stacks, self._products(mixture, recompute), strict=True):
            tables = torch.split(cells, stack.heights(self._domain))
            found |= zip(stack.positions, (table.flatten() for table in tables), strict=True)
        return torch.cat([found[position] for position in range(len(found))]) / components

    def _products(self, mixture: Products, recompute: bool) -> list[torch.Tensor]:
        """The product of each stack, summed over batches of components whose tables fit in memory."""
        at_once = max(1, MAX_ENTRIES // self._largest)
        if len(mixture.probabilities) <= at_once:
            return self._of_batch(mixture, recompute)
        batches = [
            self._of_batch(mixture.with_components(mixture.domain, some), recompute)
            for some in torch.split(mixture.probabilities, at_once)
        ]
        return [torch.stack(of_stack).sum(0) for of_stack in zip(*batches, strict=True)]

    def _of_batch(self, mixture: Products, recompute: bool) -> list[torch.Tensor]:
        def products(part: TableProducts, *rows: torch.Tensor) -> list[torch.Tensor]:
            if recompute:
                again = checkpoint(part.products, *rows, use_reentrant=False)
                return cast(list[torch.Tensor], again)
            return part.products(*rows)

        rows = self._layout.rows(mixture)
        parts = self._parts_for(len(mixture.probabilities))
        return [product for part in parts for product in products(part, *rows)]

    def _parts_for(self, components: int) -> list[TableProducts]:
        """Stacks in order, in parts that fit in memory for that many components."""
        if components not in self._parts:
            parts: list[list[TableStack]] = [[]]
            entries = 0
            for stack in self._stacks:
                entries += stack.entries(self._domain)
                if parts[-1] and entries * components > MAX_ENTRIES:
                    parts.append([])
                    entries = stack.entries(self._domain)
                parts[-1].append(stack)
            self._parts[components] = [TableProducts(stacks, self._layout) for stacks in parts]
        return self._parts[components]


@lru_cache(maxsize=KEPT_PLANS)
def products_of(blocks: tuple[LinkedTable, ...], domain: Domain) -> HierarchicalProducts:
    """Return a cached plan, since every step of a fit uses the same one."""
    return HierarchicalProducts(blocks, domain)


def _stacks_of(blocks: Sequence[LinkedTable]) -> list[TableStack]:
    alike: dict[tuple[str, tuple[str, ...], str | None], list[int]] = {}
    for position, block in enumerate(blocks):
        last = block.of_groups[-1] if block.of_groups and not block.of_individuals else None
        alike.setdefault((block.level, block.of_individuals, last), []).append(position)
    return [
        TableStack(
            level,
            own,
            last,
            tuple(blocks[i].of_groups[:-1] if last else blocks[i].of_groups for i in positions),
            tuple(positions),
        )
        for (level, own, last), positions in alike.items()
    ]
