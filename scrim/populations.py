"""Protected people and their budgets."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from scrim.blocking import blocking, blocking_each
from scrim.records import LedgerEntry, Population, Verification
from scrim.spec.budget import Budget
from scrim.transport import Transport, idempotent
from scrim.values import plain


class AsyncPopulations:
    """Protected people and their budgets."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(
        self,
        name: str,
        *,
        cap: Mapping[str, float] | Budget,
        delta: float,
        unit: str = "row",
        relation: str = "add_remove",
        max_rows_per_person: int | None = None,
        max_household_size: int | None = None,
        idempotency_key: str | None = None,
    ) -> Population:
        """Register a population with a cap such as `{"epsilon": 10.0}`; some units need a bound on rows."""
        body: dict[str, Any] = {
            "name": name,
            "unit": unit,
            "relation": relation,
            "cap": plain(cap),
            "delta": delta,
            "max_rows_per_person": max_rows_per_person,
            "max_household_size": max_household_size,
        }
        return await self._transport.post(
            "/v1/populations",
            Population,
            json={field: value for field, value in body.items() if value is not None},
            headers=idempotent(idempotency_key),
        )

    def list(self) -> AsyncGenerator[Population, None]:
        """All populations, newest first."""
        return self._transport.pages("/v1/populations", Population)

    async def get(self, population_id: str) -> Population:
        """One population with its budget."""
        return await self._transport.get(f"/v1/populations/{population_id}", Population)

    def ledger(self, population_id: str) -> AsyncGenerator[LedgerEntry, None]:
        """Every change of the balance, oldest first."""
        return self._transport.pages(f"/v1/populations/{population_id}/ledger", LedgerEntry)

    async def verify_ledger(self, population_id: str) -> Verification:
        """Ask the service to recompute the chain."""
        path = f"/v1/populations/{population_id}/ledger/verify"
        return await self._transport.get(path, Verification)


class Populations:
    """Protected people and their budgets."""

    def __init__(self, calls: AsyncPopulations) -> None:
        self._calls = calls

    create = blocking(AsyncPopulations.create)
    list = blocking_each(AsyncPopulations.list)
    get = blocking(AsyncPopulations.get)
    ledger = blocking_each(AsyncPopulations.ledger)
    verify_ledger = blocking(AsyncPopulations.verify_ledger)
