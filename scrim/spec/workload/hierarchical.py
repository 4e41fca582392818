"""Queries about groups of individuals: the number of groups, or of individuals, that satisfy a conjunction.

A group satisfies a conjunction if its own columns meet their conditions and, if there are conditions on
individuals, one of its individuals meets all of those. An individual satisfies it if its own columns and
those of its group meet their conditions. All combinations of values of some columns form one table,
counted at one of the two levels. Its sensitivity is in docs/privacy.md, section 3.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.base import Seed, Spec
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload.block import Block
from scrim.spec.workload.blocks import refuse_many_blocks
from scrim.spec.workload.marginals import (
    MAX_BLOCKS,
    MAX_ORDER,
    ColumnSets,
    choose_combinations,
    in_schema_order,
)

Level = Literal["group", "individual"]


@dataclass(frozen=True)
class HierarchicalBlock(Block):
    """Counts of groups or of individuals for every combination of values of some columns.

    Without columns it is one query: the number of groups, or of individuals.
    """

    needs_bins: ClassVar[bool] = True

    level: Level
    """Whether groups or individuals are counted."""

    def size(self, schema: Schema) -> int:
        """Number of combinations."""
        return math.prod(schema.sizes[name] for name in self.attributes)

    def sensitivity(self, schema: Schema, protection: Protection) -> Sensitivity:
        """The sensitivity by unit and level, as in the table of docs/privacy.md, section 3."""
        linked = as_linked(schema)
        cells = self.size(schema)
        own = [name for name in self.attributes if name not in set(linked.group_attributes)]
        kinds = math.prod(schema.sizes[name] for name in own)
        if protection.unit == "household":
            if self.level == "group":
                return _groups_moved_by_a_household(cells, kinds, linked, protection)
            return _individuals_moved_by_a_household(cells, linked, protection)
        return _moved_by_people(kinds, protection)


@dataclass(frozen=True)
class GroupSizesBlock(Block):
    """The number of groups with one individual, two, and so on."""

    def size(self, schema: Schema) -> int:
        """One query for each size."""
        return as_linked(schema).max_group_size

    def sensitivity(self, schema: Schema, protection: Protection) -> Sensitivity:
        """The sensitivity: a group has one size, and a person who joins it increases the size by one."""
        linked = as_linked(schema)
        if protection.unit == "household":
            return _groups_moved_by_a_household(linked.max_group_size, 1, linked, protection)
        if protection.relation == "replace_one":
            return Sensitivity(0, 0, 0)
        return _moved_by_each(protection, cells=min(2, linked.max_group_size))


NUMBER_OF_GROUPS = HierarchicalBlock((), "group")
NUMBER_OF_INDIVIDUALS = HierarchicalBlock((), "individual")


def _groups_moved_by_a_household(
    cells: int, kinds: int, schema: LinkedSchema, protection: Protection
) -> Sensitivity:
    """A group counts once in each cell of a kind of individual that it contains."""
    if protection.relation == "add_remove":
        moved = min(schema.max_group_size, kinds)
    else:
        # A table with a single cell counts all groups, and their number does not change.
        moved = min(2 * min(schema.max_group_size, kinds), cells) if cells > 1 else 0
    return Sensitivity(l1=moved, l2_squared=moved, linf=min(1, moved))


def _individuals_moved_by_a_household(
    cells: int, schema: LinkedSchema, protection: Protection
) -> Sensitivity:
    """All individuals of a group may be in one cell, and all those of its replacement in another."""
    individuals = schema.max_group_size
    if protection.relation == "add_remove":
        return Sensitivity(l1=individuals, l2_squared=individuals**2, linf=individuals)
    if cells == 1:
        # A group has at least one individual, before and after.
        only = individuals - 1
        return Sensitivity(l1=only, l2_squared=only**2, linf=only)
    return Sensitivity(l1=2 * individuals, l2_squared=2 * individuals**2, linf=individuals)


def _moved_by_people(kinds: int, protection: Protection) -> Sensitivity:
    """A row moves from one kind of individual to another, inside its group.

    This also holds under add/remove: a person who joins a full group displaces another individual there,
    because groups are truncated. If all individuals are of one kind, a row changes nothing in a group that
    remains; but adding or removing a person may add or remove the group.
    """
    if kinds > 1:
        return _moved_by_each(protection, cells=2)
    if protection.relation == "replace_one":
        return Sensitivity(0, 0, 0)
    return _moved_by_each(protection, cells=1)


def _moved_by_each(protection: Protection, *, cells: int) -> Sensitivity:
    """Each row that a person owns may change `cells` cells by one."""
    rows = protection.max_rows_per_unit
    return Sensitivity(l1=cells * rows, l2_squared=cells * rows**2, linf=rows)


class Hierarchical(Spec):
    """Conjunctions over columns of groups and of individuals, as whole tables.

    Either sets of `k` columns, for each number of group columns among them from 0 to `k`: all such sets, or
    a public random choice of `count` for each number (all, if there are fewer). Or named sets
    (`attributes`). Each set is counted at the given levels.
    """

    type: Literal["hierarchical"]
    """Always `hierarchical`."""
    k: Annotated[int, Field(ge=1, le=MAX_ORDER)] | None = None
    """Number of columns in each set."""
    count: Annotated[int, Field(ge=1, le=MAX_BLOCKS)] | None = None
    """Number of sets to choose at random for each number of group columns."""
    seed: Seed | None = None
    """Seed of that public random choice."""
    attributes: ColumnSets | None = None
    """The columns of each set, by name; columns of groups and of individuals may be mixed."""
    levels: Annotated[
        list[Level], Field(min_length=1, max_length=2, json_schema_extra={"uniqueItems": True})
    ] = ["group", "individual"]
    """Count groups ("households in towns that contain a woman over 60"), individuals ("women over 60
    who live in households in towns"), or both."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.k is None) == (self.attributes is None):
            raise ValueError("give either k or attributes")
        if (self.count is None) != (self.seed is None):
            raise ValueError("give count and seed together")
        if self.count is not None and self.k is None:
            raise ValueError("count requires k")
        if len(set(self.levels)) < len(self.levels):
            raise ValueError("levels lists the same level twice")
        return self

    def expand(self, schema: Schema) -> list[Block]:
        """Each set of columns at each level."""
        chosen = self._choose(as_linked(schema))
        return [HierarchicalBlock(names, level) for names, level in product(chosen, self.levels)]

    def _choose(self, schema: LinkedSchema) -> list[tuple[str, ...]]:
        if self.attributes is not None:
            return in_schema_order(self.attributes, [column.name for column in schema.attributes])
        assert self.k is not None
        discrete = [name for name in schema.sizes if name in set(schema.group_attributes)]
        own = [name for name in schema.sizes if name in set(schema.individual_attributes)]
        splits = [
            (of_groups, self.k - of_groups)
            for of_groups in range(self.k + 1)
            if of_groups <= len(discrete) and self.k - of_groups <= len(own)
        ]
        if not splits:
            raise SpecError(
                f"sets of {self.k} columns need {self.k} columns; the schema has "
                f"{len(discrete) + len(own)} that are categorical or have bins"
            )
        available = [_count_sets(discrete, own, split) for split in splits]
        # All are counted before any is listed.
        refuse_many_blocks(len(self.levels) * sum(min(self.count or n, n) for n in available))
        sets = [
            self._of_split(discrete, own, *split, available=count)
            for split, count in zip(splits, available, strict=True)
        ]
        return [names for each in sets for names in each]

    def _of_split(
        self,
        groups: list[str],
        individuals: list[str],
        of_groups: int,
        of_individuals: int,
        *,
        available: int,
    ) -> Iterable[tuple[str, ...]]:
        if self.count is None or self.count >= available:
            pairs = product(
                combinations(groups, of_groups), combinations(individuals, of_individuals)
            )
            return [(*first, *second) for first, second in pairs]
        assert self.seed is not None
        return choose_combinations(
            [(groups, of_groups), (individuals, of_individuals)], self.count, self.seed
        )


def _count_sets(groups: list[str], individuals: list[str], split: tuple[int, int]) -> int:
    """The number of sets with that many columns of groups and of individuals."""
    return math.comb(len(groups), split[0]) * math.comb(len(individuals), split[1])


class GroupSizes(Spec):
    """The number of groups with one individual, two, and so on."""

    type: Literal["group_sizes"]
    """Always `group_sizes`."""

    def expand(self, schema: Schema) -> list[Block]:
        """One table."""
        as_linked(schema)
        return [GroupSizesBlock(())]


def as_linked(schema: Schema) -> LinkedSchema:
    """Return the schema of linked rows; refuse tables without groups."""
    if not isinstance(schema, LinkedSchema):
        raise SpecError(
            "hierarchical queries need groups of individuals, but this is a single table; "
            "ask for marginals, or declare a schema with groups and individuals"
        )
    return schema
