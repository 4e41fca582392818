"""What a population had spent when the budget of a release was set aside.

Read from the ledger's entries before the reservation. They never change, whatever other releases did
since, so a report that is written again says the same.
"""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Engine, text

_BEFORE = text("""
    SELECT
        (array_agg(units ORDER BY seq DESC) FILTER (WHERE kind IN ('open_account', 'set_cap')))[1]
            AS cap,
        CAST(coalesce(sum(units) FILTER (WHERE kind = 'operation'), 0) AS bigint) AS spent,
        CAST(coalesce(sum(units) FILTER (WHERE kind = 'reserve'), 0)
            - coalesce(sum(units) FILTER (WHERE kind IN ('operation', 'close')), 0) AS bigint)
            AS reserved
    FROM ledger.audit
    WHERE account = :population_id AND seq < (
        SELECT seq FROM ledger.audit
        WHERE account = :population_id AND release_id = :release_id AND kind = 'reserve')
""")


@dataclass(frozen=True)
class Balance:
    """An account at one moment, in units of 1e-12 rho."""

    cap: int
    spent: int
    reserved: int
    """Set aside for other releases that had not ended."""


def balance_before(engine: Engine, population_id: UUID, release_id: UUID) -> Balance:
    """The account right before the release reserved its budget."""
    parameters = {"population_id": population_id, "release_id": release_id}
    with engine.connect() as connection:
        return Balance(**connection.execute(_BEFORE, parameters).one()._mapping)
