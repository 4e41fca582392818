"""The protected unit, and the neighbouring relation of datasets."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.base import Name, Spec
from scrim.spec.budget import Budget, Delta

MAX_ROWS_PER_UNIT = 1000
"""Largest bound on the rows of a unit: noise grows in proportion to it."""


class Protection(Spec):
    """The privacy unit and the neighbouring relation. All sensitivities follow from these."""

    unit: Literal["row", "person", "household"] = "row"
    """The protected unit: a row, a person with several rows, or a household."""
    relation: Literal["add_remove", "replace_one"] = "add_remove"
    """Neighbouring datasets differ by one unit added or removed, or by one unit replaced. With
    `replace_one`, the number of units is public, and so are the datasets of the population that each unit
    is in. For people in groups, the number of rows that a person has in each group is public too."""
    max_rows_per_person: Annotated[int, Field(ge=1, le=MAX_ROWS_PER_UNIT)] | None = None
    """Largest number of rows kept per person. Required if the unit is `person`."""
    max_household_size: Annotated[int, Field(ge=1, le=MAX_ROWS_PER_UNIT)] | None = None
    """Largest number of rows kept per household. Required if the unit is `household`."""

    @model_validator(mode="after")
    def _bound_declared(self) -> Self:
        needed = {"person": "max_rows_per_person", "household": "max_household_size"}.get(self.unit)
        for field in ("max_rows_per_person", "max_household_size"):
            given = getattr(self, field) is not None
            if field == needed and not given:
                raise ValueError(f"unit {self.unit!r} needs {field}")
            if field != needed and given:
                raise ValueError(f"{field} does not apply when the unit is {self.unit!r}")
        return self

    @property
    def max_rows_per_unit(self) -> int:
        """The number of rows of a table that one unit may own; sensitivities are proportional to it."""
        return self.max_rows_per_person or self.max_household_size or 1

    @property
    def row_count_sensitivity(self) -> int:
        """How much one unit changes the row count: M-1 under replace-one, else M (docs/privacy.md, 3)."""
        rows = self.max_rows_per_unit
        return rows - 1 if self.relation == "replace_one" else rows


class PartialProtection(Protection):
    """Protection in one of two linked tables, in which a unit may own no rows."""

    @property
    def row_count_sensitivity(self) -> int:
        """How much one unit changes the row count: from none to all, under either relation."""
        return self.max_rows_per_unit


class PopulationSpec(Protection):
    """The protected people, with one budget that is shared by every dataset about them."""

    name: Name
    """The curator's name for the population."""
    cap: Budget
    """The total budget that may ever be spent on the population."""
    delta: Delta
    """The delta at which epsilon is stated: a fixed policy choice, never computed from the data."""
