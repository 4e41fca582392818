"""Answers about populations. The body that creates one is scrim.spec.population.Population."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from scrim.spec.budget import Budget, epsilon_of_units, rho_of_units
from service.data.ledger.records import LedgerAccount
from service.data.populations import ShownPopulation
from service.data.views import View


class BudgetView(View):
    """The account of a population."""

    rho_cap: Annotated[float, Field(examples=[0.5])]
    """The most that may ever be spent."""
    rho_spent: float
    """The amount spent; it is never returned."""
    rho_reserved: float
    """The amount reserved for unfinished releases."""
    rho_left: float
    """The amount available for new releases."""
    epsilon_spent: float
    """The amount spent as epsilon at the population's delta, rounded up."""
    delta: float
    """The population's delta."""
    as_of: datetime | None
    """The midnight (UTC) of this balance. Null: the present balance, which only curators may see. An
    account opened since then shows its cap and no spending."""

    @classmethod
    def of(cls, account: LedgerAccount, delta: float, as_of: datetime | None) -> "BudgetView":
        """The account, for display."""
        return cls(
            rho_cap=rho_of_units(account.cap_units),
            rho_spent=rho_of_units(account.spent_units),
            rho_reserved=rho_of_units(account.reserved_units),
            rho_left=rho_of_units(account.left_units),
            epsilon_spent=epsilon_of_units(account.spent_units, delta),
            delta=delta,
            as_of=as_of,
        )


class PopulationView(View):
    """A population and its budget."""

    id: UUID
    """The population's id, which datasets refer to."""
    name: str
    """What the curator calls these people."""
    unit: Literal["row", "person", "household"]
    """What one protected unit is."""
    relation: Literal["add_remove", "replace_one"]
    """Neighbours differ by one unit more or less, or by one unit replaced."""
    max_rows_per_person: int | None
    """Largest number of rows kept of one person."""
    max_household_size: int | None
    """Largest number of rows kept of one household."""
    cap: Budget
    """The cap as first given; `budget.rho_cap` is the cap in force."""
    delta: float
    """The delta at which epsilon is stated."""
    created_at: datetime
    """When the account was opened."""
    budget: BudgetView
    """The amounts spent, reserved and left."""

    @classmethod
    def of(
        cls, population: ShownPopulation, account: LedgerAccount, *, as_of: datetime | None
    ) -> "PopulationView":
        """A population with its account, now or as of a midnight."""
        budget = BudgetView.of(account, population.delta, as_of)
        return cls.model_validate({**population._asdict(), "budget": budget})
