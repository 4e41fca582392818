"""The declared, public shape of a table. Nothing here is ever inferred from private rows."""

from collections import Counter
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator

from scrim.spec.base import Discriminated
from scrim.spec.columns import (
    BooleanColumn,
    CategoricalColumn,
    CodeColumn,
    DateColumn,
    DatetimeColumn,
    Declared,
    IdentifierColumn,
    IntegerColumn,
    LabelledColumn,
    Missing,
    OrdinalColumn,
    RealColumn,
)
from scrim.spec.columns.missing import without
from scrim.spec.rules import Rules, RuleSet, kept_rules, refuse_contradictions

MAX_COLUMNS = 1000
"""Largest number of columns of a schema; plans of pairs grow with its square."""
MAX_SCHEMA_CODES = 500_000
"""Largest total number of bins and values of all columns."""

Labelled = CategoricalColumn | BooleanColumn | CodeColumn
"""A column of categories."""

Numeric = IntegerColumn | RealColumn | OrdinalColumn | DateColumn | DatetimeColumn
"""A column of numbers, or of values that stand for numbers."""

Attribute = (
    CategoricalColumn
    | OrdinalColumn
    | BooleanColumn
    | IntegerColumn
    | RealColumn
    | DateColumn
    | DatetimeColumn
    | CodeColumn
)
"""A column that carries information and is released."""

ADVICE = (
    ". Free text cannot be released: leave the column out, or derive categories, codes or numbers "
    "from it"
)

Column = Annotated[Attribute | IdentifierColumn, Discriminated("type", ADVICE)]
"""One declared column."""

Columns = Annotated[list[Column], Field(min_length=1, max_length=MAX_COLUMNS)]


def is_discrete(column: Attribute) -> bool:
    """Whether the column has codes: it is made of categories, or has bins."""
    return isinstance(column, LabelledColumn) or column.bins is not None


def identifiers(columns: Iterable[Column]) -> list[str]:
    """The names of the identifier columns."""
    return [column.name for column in columns if isinstance(column, IdentifierColumn)]


def refuse_repeated_names(columns: list[Column]) -> None:
    repeated = [name for name, times in Counter(c.name for c in columns).items() if times > 1]
    if repeated:
        raise ValueError(f"column names must be distinct, but {repeated[0]!r} is declared twice")


def refuse_many_codes(columns: Iterable[Column]) -> None:
    """Refuse columns with too many bins and values in total."""
    codes = sum(
        column.size
        for column in columns
        if not isinstance(column, IdentifierColumn) and is_discrete(column)
    )
    if codes > MAX_SCHEMA_CODES:
        raise ValueError(
            f"the columns have {codes:,} bins and values in total, more than {MAX_SCHEMA_CODES:,}; "
            "declare wider bins or fewer values"
        )


def with_missing(columns: list[Column], missing: Missing | None) -> list[Column]:
    """The columns with spellings of missing values that are declared for all of them.

    A column's own declaration replaces them, and a declared value stays a value.
    """
    if missing is None:
        return columns
    return [
        column
        if isinstance(column, IdentifierColumn) or column.missing is not None
        else _with_missing(column, missing)
        for column in columns
    ]


def _with_missing(column: Attribute, missing: Missing) -> Attribute:
    values = [text for text in missing if _is_label(column, text)]
    declared = column.model_copy(update={"missing": without(missing, values)})
    try:
        declared.refuse_faults()
    except ValueError as problem:
        raise ValueError(f"column {column.name!r}: {problem}") from None
    return declared


def _is_label(column: Attribute, text: str) -> bool:
    return isinstance(column, LabelledColumn | OrdinalColumn) and column.is_value(text)


def refuse_taken_names(columns: Iterable[Column]) -> None:
    """Refuse a column with the name that another column's kinds of missing values have in Parquet."""
    names = {column.name for column in columns}
    for column in columns:
        if isinstance(column, IdentifierColumn) or len(column.kinds) < 2:
            continue
        if (taken := column.name_of_kinds) in names:
            raise ValueError(
                f"the kinds of missing values of column {column.name!r} are released as {taken!r}; "
                "rename the column of that name"
            )


class Schema(Declared):
    """The declared columns of a table, in the order in which they are released."""

    missing: Annotated[Missing | None, Field(exclude_if=lambda value: value is None)] = None
    """Cells that mean missing in all columns that do not declare their own."""
    columns: Columns
    """The columns. Columns of the uploaded file that are not declared are ignored."""

    # Left out of the JSON if empty, so that the hash of a schema does not change.
    rules: Annotated[Rules, Field(exclude_if=lambda value: not value)] = []
    """Combinations of values that no row has. Released rows never have them either."""

    @field_validator("columns", mode="after")
    @classmethod
    def _with_missing(cls, columns: list[Column], info: ValidationInfo) -> list[Column]:
        return with_missing(columns, info.data.get("missing"))

    def refuse_faults(self) -> None:
        """Require distinct names, a released column, a limited number of codes, and rules that fit."""
        refuse_repeated_names(self.columns)
        refuse_taken_names(self.columns)
        if not self.attributes:
            raise ValueError("declare at least one column that is not an identifier")
        refuse_many_codes(self.columns)
        of_groups = self.columns_of_groups if self.is_linked else None
        refuse_contradictions(self.attributes, self.rules, of_groups=of_groups, places=self.places)

    @property
    def linked(self) -> "Schema":
        """The schema of the rows that mechanisms read: this table, which is not linked."""
        return self

    @property
    def key(self) -> str | None:
        """The identifier that the rows of a group share; None if rows have no groups."""
        return None

    @property
    def columns_of_groups(self) -> frozenset[str]:
        """The columns that all rows of a group share."""
        return frozenset()

    @property
    def places(self) -> int:
        """The largest number of rows in a group; 1 if rows have no groups."""
        return 1

    @property
    def is_linked(self) -> bool:
        """Whether mechanisms read linked rows: individuals with the columns of their groups."""
        return self.key is not None

    @property
    def row_noun(self) -> Literal["rows", "groups"]:
        """What a model draws: rows, or groups."""
        return "groups" if self.is_linked else "rows"

    @property
    def owners(self) -> list[str]:
        """The columns that may identify the person or household that a row belongs to."""
        return identifiers(self.columns)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns that are released."""
        return tuple(c for c in self.columns if not isinstance(c, IdentifierColumn))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The number of codes of each column that is categorical or has bins."""
        return {column.name: column.size for column in self.attributes if is_discrete(column)}

    @property
    def names(self) -> list[str]:
        """The names of the released columns, in order."""
        return [column.name for column in self.attributes]

    def project(self, names: Collection[str]) -> Self:
        """The schema without the attributes that are not named; identifiers are kept."""
        kept = [c for c in self.columns if isinstance(c, IdentifierColumn) or c.name in names]
        rules = kept_rules(self.rules, names)
        return self.model_copy(update={"columns": kept, "rules": rules})

    @cached_property
    def rule_set(self) -> RuleSet:
        """The rules in terms of the parts of columns that they distinguish."""
        of_groups, places = self.columns_of_groups, self.places
        return RuleSet.of(self.attributes, self.rules, of_groups=of_groups, places=places)

    def attribute(self, name: str) -> Attribute:
        """The released column of that name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {column.name: column for column in self.attributes}
