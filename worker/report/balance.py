"""What a population had spent at the midnight (UTC) before a release reserved its budget.

Every caller could see that balance on that day. The present one, or the one at the reservation, would
reveal the spending of other releases. It follows from entries of the ledger that never change, so a
report that is written again is the same.
"""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Engine, text

from service.data.ledger.repository import account_at
from service.data.views import day_of

_RESERVED_AT = text("""
    SELECT at FROM ledger.audit
    WHERE account = :population_id AND release_id = :release_id AND kind = 'reserve'
""")


@dataclass(frozen=True)
class Balance:
    """An account before a release, in units of 1e-12 rho."""

    cap: int
    """The cap in force when the release reserved its budget."""
    spent: int
    """What was spent at the midnight before."""


def balance_before(engine: Engine, population_id: UUID, release_id: UUID) -> Balance:
    """The account at the midnight before the release reserved its budget."""
    parameters = {"population_id": population_id, "release_id": release_id}
    with engine.connect() as connection:
        reserved_at = connection.execute(_RESERVED_AT, parameters).scalar_one()
        cap = account_at(connection, population_id, reserved_at).cap_units
        spent = account_at(connection, population_id, day_of(reserved_at)).spent_units
    return Balance(cap, spent)
