"""Queries about groups of individuals: how many groups, or individuals, fulfil a conjunction.

A group fulfils conditions on its own columns and, with conditions on individuals, contains one
individual that fulfils all of them. An individual fulfils conditions on its own columns and on those
of its group. All combinations of values of some columns make one table, counted at one of the two
levels. How far a unit moves it is in docs/privacy.md, section 3.
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
    """Every combination of values of some columns, counted in groups or in individuals.

    Without columns it is one query: the number of groups, or of individuals.
    """

    needs_bins: ClassVar[bool] = True

    level: Level
    """What is counted."""

    def size(self, schema: Schema) -> int:
        """Number of combinations."""
        return math.prod(schema.sizes[name] for name in self.attributes)

    def sensitivity(self, schema: Schema, protection: Protection) -> Sensitivity:
        """By the rows of docs/privacy.md, section 3: who is protected, and what is counted."""
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
    """How many groups have one individual, two, and so on."""

    def size(self, schema: Schema) -> int:
        """One query for each size."""
        return as_linked(schema).max_group_size

    def sensitivity(self, schema: Schema, protection: Protection) -> Sensitivity:
        """A group has one size; somebody who joins it takes it from one size to the next."""
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
    """A group is in one cell for each kind of individual that it contains, and in each once."""
    if protection.relation == "add_remove":
        moved = min(schema.max_group_size, kinds)
    else:
        # The only cell of a table counts all groups, and their number stays.
        moved = min(2 * min(schema.max_group_size, kinds), cells) if cells > 1 else 0
    return Sensitivity(l1=moved, l2_squared=moved, linf=min(1, moved))


def _individuals_moved_by_a_household(
    cells: int, schema: LinkedSchema, protection: Protection
) -> Sensitivity:
    """All individuals of a group may be in one cell, and all of another one's in another."""
    individuals = schema.max_group_size
    if protection.relation == "add_remove":
        return Sensitivity(l1=individuals, l2_squared=individuals**2, linf=individuals)
    if cells == 1:
        # A group has at least one individual, before and after.
        only = individuals - 1
        return Sensitivity(l1=only, l2_squared=only**2, linf=only)
    return Sensitivity(l1=2 * individuals, l2_squared=2 * individuals**2, linf=individuals)


def _moved_by_people(kinds: int, protection: Protection) -> Sensitivity:
    """A row leaves one kind and enters another, inside its group.

    So it is under add/remove as well: whoever joins a group that is full displaces another individual
    there, because groups are truncated. Where all individuals are of one kind, rows in a group that
    stays change nothing, and somebody who comes or goes may bring or take the group.
    """
    if kinds > 1:
        return _moved_by_each(protection, cells=2)
    if protection.relation == "replace_one":
        return Sensitivity(0, 0, 0)
    return _moved_by_each(protection, cells=1)


def _moved_by_each(protection: Protection, *, cells: int) -> Sensitivity:
    """Each row that a person owns may move so many cells by one."""
    rows = protection.max_rows_per_unit
    return Sensitivity(l1=cells * rows, l2_squared=cells * rows**2, linf=rows)


class Hierarchical(Spec):
    """Conjunctions over columns of groups and of individuals, as whole tables.

    Sets of `k` columns, for each number of group columns among them from none to `k`: all such sets,
    or a public random choice of `count` for each number (all, where there are no more); or named sets
    (`attributes`). Each is counted at the given levels.
    """

    type: Literal["hierarchical"]
    """Always `hierarchical`."""
    k: Annotated[int, Field(ge=1, le=MAX_ORDER)] | None = None
    """Number of columns in each set."""
    count: Annotated[int, Field(ge=1, le=MAX_BLOCKS)] | None = None
    """How many sets to choose at random for each number of group columns."""
    seed: Seed | None = None
    """Seed of that public random choice."""
    attributes: ColumnSets | None = None
    """The columns of each set, by name, of groups and of individuals alike."""
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
            self._of_split(discrete, own, of_groups, self.k - of_groups)
            for of_groups in range(self.k + 1)
            if of_groups <= len(discrete) and self.k - of_groups <= len(own)
        ]
        if not splits:
            raise SpecError(
                f"sets of {self.k} columns need {self.k} columns; the schema has "
                f"{len(discrete) + len(own)} that are categorical or have bins"
            )
        return [names for split in splits for names in split]

    def _of_split(
        self, groups: list[str], individuals: list[str], of_groups: int, of_individuals: int
    ) -> Iterable[tuple[str, ...]]:
        available = math.comb(len(groups), of_groups) * math.comb(len(individuals), of_individuals)
        if self.count is None or self.count >= available:
            if available > MAX_BLOCKS:
                raise SpecError(
                    f"there are {available} sets of {of_groups} group columns and {of_individuals} "
                    f"others, more than {MAX_BLOCKS}; give count and seed, or attributes"
                )
            pairs = product(
                combinations(groups, of_groups), combinations(individuals, of_individuals)
            )
            return [(*first, *second) for first, second in pairs]
        assert self.seed is not None
        return choose_combinations(
            [(groups, of_groups), (individuals, of_individuals)], self.count, self.seed
        )


class GroupSizes(Spec):
    """How many groups have one individual, two, and so on."""

    type: Literal["group_sizes"]
    """Always `group_sizes`."""

    def expand(self, schema: Schema) -> list[Block]:
        """One table."""
        as_linked(schema)
        return [GroupSizesBlock(())]


def as_linked(schema: Schema) -> LinkedSchema:
    """The schema of linked rows, or a refusal of tables that have no groups."""
    if not isinstance(schema, LinkedSchema):
        raise SpecError(
            "hierarchical queries need groups of individuals, but this is a single table; "
            "ask for marginals, or declare a schema with groups and individuals"
        )
    return schema
