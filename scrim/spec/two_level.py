"""Groups of individuals, such as households of people: two tables that are linked by a key.

Released models, queries and the door use linked rows (`LinkedSchema`): one row per individual, with the
columns of its group and its own, and the group's key, which identifies the rows of a group.
"""

from collections.abc import Collection
from functools import cached_property
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator

from scrim.spec.base import Name, Spec
from scrim.spec.columns import Declared, IdentifierColumn, Missing
from scrim.spec.population import PartialProtection, Protection
from scrim.spec.rules import GroupRule, Rule, Rules, kept_rules, refuse_contradictions
from scrim.spec.schema import (
    MAX_COLUMNS,
    Attribute,
    Columns,
    Schema,
    identifiers,
    refuse_many_codes,
    refuse_repeated_names,
    refuse_taken_names,
    with_missing,
)

MAX_GROUP_SIZE = 1000
"""Largest bound on the size of a group: models have a place for each individual."""

LevelTable = Literal["groups", "individuals"]
"""One of the two tables."""


class GroupTable(Spec):
    """The table of groups (for example households) of a two-level schema."""

    key: Name
    """The column that identifies a group."""
    columns: Columns
    """The columns that describe a group."""


class IndividualTable(Spec):
    """The table of individuals of a two-level schema."""

    group_key: Name
    """The column that names the individual's group."""
    columns: Columns
    """The columns that describe an individual."""
    order: Name | None = None
    """A column by which the individuals of a released group are sorted. Without it their order has no
    meaning, because no query depends on it."""


AnyTable = TypeVar("AnyTable", GroupTable, IndividualTable)


class TwoLevelSchema(Declared):
    """Groups of individuals, linked by a key."""

    missing: Annotated[Missing | None, Field(exclude_if=lambda value: value is None)] = None
    """Cells that mean missing in all columns that do not declare their own."""
    groups: GroupTable
    """One row per group."""
    individuals: IndividualTable
    """One row per individual."""
    max_group_size: Annotated[int, Field(ge=1, le=MAX_GROUP_SIZE)]
    """Largest number of individuals kept in a group; larger groups are truncated, never dropped."""
    rules: Annotated[Rules, Field(exclude_if=lambda value: not value)] = []
    """Combinations that no individual with the columns of its group has, and numbers of individuals that no
    group has."""

    @field_validator("groups", "individuals", mode="after")
    @classmethod
    def _with_missing(cls, table: AnyTable, info: ValidationInfo) -> AnyTable:
        columns = with_missing(table.columns, info.data.get("missing"))
        return table.model_copy(update={"columns": columns})

    def refuse_faults(self) -> None:
        """Require distinct names, a released column, a limited number of codes, and rules that fit."""
        groups, individuals = self.groups, self.individuals
        for columns in (groups.columns, individuals.columns):
            refuse_repeated_names(columns)
        described = (*_attributes(groups.columns, groups.key), *self._individual_attributes)
        if not described:
            raise ValueError("declare at least one column that is not an identifier")
        # A linked row has the columns of both tables.
        together = [_identifier(groups.key), *described]
        refuse_repeated_names(together)
        refuse_taken_names(together)
        if len(together) > MAX_COLUMNS:
            raise ValueError(
                f"both tables together have {len(together):,} columns, but at most {MAX_COLUMNS:,} are "
                "allowed; declare fewer columns"
            )
        names = [column.name for column in self._individual_attributes]
        if individuals.order is not None and individuals.order not in names:
            raise ValueError("order must name a column of the individuals that is released")
        refuse_many_codes(described)
        refuse_contradictions(
            described,
            self.rules,
            of_groups={column.name for column in _attributes(groups.columns, groups.key)},
            places=self.max_group_size,
        )

    def table(self, name: LevelTable) -> Schema:
        """The schema of one table alone, with its key as an identifier before its other columns."""
        if name == "groups":
            return _keyed(self.groups.key, self.groups.columns, self.rules)
        return _keyed(self.individuals.group_key, self.individuals.columns, self.rules)

    @cached_property
    def linked(self) -> "LinkedSchema":
        """The schema of individuals with the columns of their groups."""
        of_groups = _attributes(self.groups.columns, self.groups.key)
        return LinkedSchema(
            columns=[_identifier(self.groups.key), *of_groups, *self._individual_attributes],
            group_attributes=[column.name for column in of_groups],
            group_key=self.individuals.group_key,
            max_group_size=self.max_group_size,
            order=self.individuals.order,
            rules=self.rules,
        )

    @property
    def is_linked(self) -> bool:
        """Whether mechanisms read linked rows: individuals with the columns of their groups."""
        return True

    @property
    def places(self) -> int:
        """The largest number of individuals in a group."""
        return self.max_group_size

    @property
    def owners(self) -> list[str]:
        """The columns of individuals that may identify a person, without the key of the group."""
        own = self.individuals
        return [name for name in identifiers(own.columns) if name != own.group_key]

    @property
    def _individual_attributes(self) -> list[Attribute]:
        return _attributes(self.individuals.columns, self.individuals.group_key)


class LinkedSchema(Schema):
    """One row per individual: the group's key, the group's columns, and the individual's own."""

    group_attributes: list[Name]
    """The columns that describe a group; they come before those that describe an individual."""
    group_key: Name
    """The name of the key in the released table of individuals."""
    max_group_size: Annotated[int, Field(ge=1, le=MAX_GROUP_SIZE)]
    """Largest number of individuals in a group."""
    order: Name | None = None
    """The column by which the individuals of a released group are sorted, if there is one."""

    @property
    def key(self) -> str:
        """The identifier that the rows of a group share."""
        return self.columns[0].name

    @cached_property
    def columns_of_groups(self) -> frozenset[str]:
        """The columns that all rows of a group share."""
        return frozenset(self.group_attributes)

    @property
    def places(self) -> int:
        """The largest number of individuals in a group."""
        return self.max_group_size

    def project(self, names: Collection[str]) -> Self:
        """The schema without the attributes that are not named; the key is kept."""
        of_groups = [name for name in self.group_attributes if name in names]
        order = self.order if self.order in names else None
        changes = {"group_attributes": of_groups, "order": order}
        return super().project(names).model_copy(update=changes)

    @cached_property
    def individual_attributes(self) -> list[str]:
        """The columns that describe an individual."""
        of_groups = self.columns_of_groups
        return [column.name for column in self.attributes if column.name not in of_groups]


def protection_of_table(
    protection: Protection, schema: TwoLevelSchema, table: LevelTable
) -> Protection:
    """The population's protection in one of the two tables alone.

    A household owns at most one row of the groups, and as many individuals as a group may have. A
    person's rows are limited by the population in either table. A unit may own no row in one table: a
    household without individuals, or individuals whose household has no row.
    """
    fields = protection.model_dump(include=set(Protection.model_fields))
    if protection.unit == "household":
        fields["max_household_size"] = 1 if table == "groups" else schema.max_group_size
    return PartialProtection(**fields)


def _attributes(columns: Columns, key: str) -> list[Attribute]:
    return [
        column
        for column in columns
        if not isinstance(column, IdentifierColumn) and column.name != key
    ]


def _keyed(key: str, columns: Columns, rules: list[Rule]) -> Schema:
    others = [column for column in columns if column.name != key]
    about_rows = [rule for rule in rules if not isinstance(rule, GroupRule)]
    kept = kept_rules(about_rows, {column.name for column in others})
    # Not validated: a table may have only its key.
    return Schema.model_construct(columns=[_identifier(key), *others], rules=kept)


def _identifier(name: str) -> IdentifierColumn:
    return IdentifierColumn(name=name, type="identifier")


def shape_of(value: Any) -> Literal["flat", "two_level"]:
    """Whether a declaration describes one table of rows, or groups and individuals."""
    if isinstance(value, dict):
        return "two_level" if "groups" in value or "individuals" in value else "flat"
    return "two_level" if isinstance(value, TwoLevelSchema) else "flat"


DeclaredSchema = Annotated[
    Annotated[Schema, Tag("flat")] | Annotated[TwoLevelSchema, Tag("two_level")],
    Discriminator(shape_of),
]
"""The schema of a dataset: one table of rows, or groups of individuals."""
