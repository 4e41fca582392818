"""Answers about populations. The body that creates one is synth.spec.population.Population."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from service.ledger.records import Account
from service.models import PopulationRow
from synth.spec.budget import Budget, epsilon_of_units, rho_of_units


class BudgetView(BaseModel):
    """The account of a population."""

    rho_cap: Annotated[float, Field(examples=[0.5])]
    """Everything that may ever be spent."""
    rho_spent: float
    """What was spent; it never comes back."""
    rho_reserved: float
    """What unfinished releases may still spend."""
    rho_left: float
    """What a new release may still ask for."""
    epsilon_spent: float
    """What was spent, as an epsilon at the population's delta, rounded up."""
    delta: float
    """The population's delta."""

    @classmethod
    def of(cls, account: Account, delta: float) -> "BudgetView":
        """The account, for display."""
        return cls(
            rho_cap=rho_of_units(account.cap_units),
            rho_spent=rho_of_units(account.spent_units),
            rho_reserved=rho_of_units(account.reserved_units),
            rho_left=rho_of_units(account.left_units),
            epsilon_spent=epsilon_of_units(account.spent_units, delta),
            delta=delta,
        )


class PopulationView(BaseModel):
    """A population and its budget."""

    id: UUID
    name: str
    unit: Literal["row", "person", "household"]
    relation: Literal["add_remove", "replace_one"]
    max_rows_per_person: int | None
    max_household_size: int | None
    cap: Budget
    """The cap as it was given."""
    delta: float
    created_at: datetime
    budget: BudgetView

    @classmethod
    def of(cls, row: PopulationRow, account: Account) -> "PopulationView":
        """The row and the account of a population."""
        known = {name: getattr(row, name) for name in cls.model_fields if name != "budget"}
        return cls(**known, budget=BudgetView.of(account, row.delta))
