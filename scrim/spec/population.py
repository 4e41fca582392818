"""Who is protected, and what it means for two datasets to be neighbours."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.base import Name, Spec
from scrim.spec.budget import Budget, Delta

MAX_ROWS_PER_UNIT = 1000


class Protection(Spec):
    """The privacy unit and the neighbouring relation. All sensitivities follow from these."""

    unit: Literal["row", "person", "household"] = "row"
    """What one protected unit is: a row, a person with several rows, or a household."""
    relation: Literal["add_remove", "replace_one"] = "add_remove"
    """Neighbours differ by one unit more or less, or by one unit replaced. With `replace_one` the
    number of units is public, and so is which datasets of the population a unit is in. Of people in
    groups it is also public how many rows a person has in each group."""
    max_rows_per_person: Annotated[int, Field(ge=1, le=MAX_ROWS_PER_UNIT)] | None = None
    """Largest number of rows kept of one person. Needed when the unit is `person`."""
    max_household_size: Annotated[int, Field(ge=1, le=MAX_ROWS_PER_UNIT)] | None = None
    """Largest number of rows kept of one household. Needed when the unit is `household`."""

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
        """How many rows of a table one unit may own; sensitivities grow in proportion."""
        return self.max_rows_per_person or self.max_household_size or 1

    @property
    def row_count_sensitivity(self) -> int:
        """How far one unit moves the number of rows: M-1 under replace-one, else M (docs/privacy.md, 3)."""
        rows = self.max_rows_per_unit
        return rows - 1 if self.relation == "replace_one" else rows


class PartialProtection(Protection):
    """Protection in one of two linked tables, where a unit may own no row at all."""

    @property
    def row_count_sensitivity(self) -> int:
        """How far one unit moves the number of rows: from none to all, under either relation."""
        return self.max_rows_per_unit


class PopulationSpec(Protection):
    """The protected people: they own one budget, shared by every dataset about them."""

    name: Name
    """What the curator calls these people."""
    cap: Budget
    """Everything that may ever be spent on them."""
    delta: Delta
    """The delta at which epsilon is stated; a policy constant, never computed from the data."""
