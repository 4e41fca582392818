"""The shapes of rules, as a schema declares them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from scrim.spec.base import Name, Spec
from scrim.spec.columns.declared import Declared
from scrim.spec.columns.numeric import LARGEST_INTEGER

MAX_RULES = 1000
MAX_CONDITIONS = 20
MAX_LISTED = 10_000

Whole = Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Text = Annotated[str, Field(max_length=1000)]

Value = bool | Whole | float | Text | None
"""A value as the column declares it; null is missing."""
Bound = Whole | float | Text
"""A number, or a date as text."""


class Within(Declared):
    """A number between two bounds, both included; or a missing value."""

    min: Bound | None = None
    """Smallest value that meets the condition. Default: any."""
    max: Bound | None = None
    """Largest value that meets the condition. Default: any."""
    missing: bool | None = None
    """`true` alone: the value is missing. `true` with a bound: missing also meets the condition. `false`
    alone: the value is known."""

    def refuse_faults(self) -> None:
        """Require a field."""
        if self.min is None and self.max is None and self.missing is None:
            raise ValueError("give min, max or missing")


def _form(value: Any) -> Literal["values", "within"]:
    return "values" if isinstance(value, list | tuple) else "within"


Condition = Annotated[
    Annotated[Annotated[list[Value], Field(min_length=1, max_length=MAX_LISTED)], Tag("values")]
    | Annotated[Within, Tag("within")],
    Discriminator(_form),
]
"""A condition on one column: a list of values, or bounds of a number, or that the value is missing."""

Conditions = Annotated[dict[Name, Condition], Field(min_length=1, max_length=MAX_CONDITIONS)]
"""Conditions by column; a row meets them if it meets every one."""


class WhenThen(Declared):
    """Rows that meet `when` also meet `then`."""

    when: Conditions
    """Conditions on a row."""
    then: Conditions
    """What such a row also meets. Columns differ from those of `when`."""

    def refuse_faults(self) -> None:
        """Require different columns on both sides."""
        both = [name for name in self.then if name in self.when]
        if both:
            raise ValueError(f"{both[0]!r} is in both when and then; name it in one of them")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with a condition."""
        return (*self.when, *self.then)

    def kept(self, names: Collection[str]) -> "WhenThen | None":
        """What the rule says about some columns alone; None if that is nothing."""
        then = {name: each for name, each in self.then.items() if name in names}
        if not then or not all(name in names for name in self.when):
            return None
        return self.model_copy(update={"then": then})


class Never(Spec):
    """No row meets all conditions."""

    never: Conditions
    """Conditions on a row."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with a condition."""
        return tuple(self.never)

    def kept(self, names: Collection[str]) -> "Never | None":
        """The rule, if it mentions none but these columns."""
        return self if all(name in names for name in self.never) else None


Operator = Literal["<=", "<", ">=", ">"]


class Compare(Declared):
    """Two columns in order; rows in which one is missing follow the rule."""

    compare: Annotated[tuple[Name, Operator, Name], Field(strict=False)]
    """A column, an operator, and another column of the same type."""

    def refuse_faults(self) -> None:
        """Require two columns."""
        if self.compare[0] == self.compare[2]:
            raise ValueError("compare two different columns")

    @property
    def columns(self) -> tuple[str, ...]:
        """The two columns."""
        return (self.compare[0], self.compare[2])

    def kept(self, names: Collection[str]) -> "Compare | None":
        """The rule, if it mentions none but these columns."""
        return self if all(name in names for name in self.columns) else None


class GroupCount(Declared):
    """How many individuals of a group meet conditions."""

    where: Conditions
    """Conditions on an individual, together with the columns of its group."""
    at_least: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Smallest number of such individuals."""
    at_most: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Largest number of such individuals."""
    exactly: Annotated[int, Field(ge=0, le=1000)] | None = None
    """The number of such individuals; instead of the other two."""

    def refuse_faults(self) -> None:
        """Require a number."""
        if self.exactly is None and self.at_least is None and self.at_most is None:
            raise ValueError("give at_least, at_most or exactly")
        if self.exactly is not None and not (self.at_least is None and self.at_most is None):
            raise ValueError("give exactly alone, without at_least and at_most")

    @property
    def least(self) -> int:
        """The smallest number allowed."""
        return self.exactly if self.exactly is not None else self.at_least or 0

    @property
    def most(self) -> int:
        """The largest number allowed; a group has at most 1000 individuals."""
        if self.exactly is not None:
            return self.exactly
        return 1000 if self.at_most is None else self.at_most


class GroupRule(Spec):
    """A rule about a group as a whole, in two-level schemas."""

    group: GroupCount
    """How many individuals of every group meet conditions."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with a condition."""
        return tuple(self.group.where)

    def kept(self, names: Collection[str]) -> "GroupRule | None":
        """The rule, if it mentions none but these columns."""
        return self if all(name in names for name in self.columns) else None


def _shape(value: Any) -> Literal["when", "never", "compare", "group"]:
    if isinstance(value, Mapping):
        if "never" in value:
            return "never"
        if "compare" in value:
            return "compare"
        return "group" if "group" in value else "when"
    if isinstance(value, Never):
        return "never"
    if isinstance(value, Compare):
        return "compare"
    return "group" if isinstance(value, GroupRule) else "when"


Rule = Annotated[
    Annotated[WhenThen, Tag("when")]
    | Annotated[Never, Tag("never")]
    | Annotated[Compare, Tag("compare")]
    | Annotated[GroupRule, Tag("group")],
    Discriminator(_shape),
]
"""One rule."""

Rules = Annotated[list[Rule], Field(max_length=MAX_RULES)]
"""Public knowledge about rows that cannot exist."""


def kept_rules(rules: Sequence[Rule], names: Collection[str]) -> list[Rule]:
    """What rules say about some columns alone."""
    kept = (rule.kept(names) for rule in rules)
    return [rule for rule in kept if rule is not None]
