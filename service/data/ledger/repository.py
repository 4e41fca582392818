"""The ledger's functions, typed. Nothing here commits: the unit of work does.

Every writer locks the account first and then the reservation, so a transaction should write to the
ledger of one population only, and stay short: it blocks that population's other jobs.
"""

import json
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Result, TextClause, text
from sqlalchemy.orm import Session

from service.data.ledger.errors import InvalidAmount, UnknownEntry, translated
from service.data.ledger.records import (
    AuditEntry,
    LedgerAccount,
    LedgerOperation,
    Relation,
    Reservation,
    Unit,
)

Executor = Connection | Session

_LARGEST_BIGINT = 2**63 - 1

# One statement, so that the balance and the entries are from the same moment.
# Charges of a running job count as reserved: their number would reveal the job's speed.
_ACCOUNT_AT = """
    WITH later AS MATERIALIZED (
        SELECT seq, kind, release_id, units, payload FROM ledger.audit
        WHERE account = :population_id AND at >= :at
    ), total AS (
        SELECT coalesce(sum(units) FILTER (WHERE kind = 'operation'), 0) AS charged,
               coalesce(sum(units) FILTER (WHERE kind IN ('reserve', 'reopen')), 0) AS reserved,
               coalesce(sum(units) FILTER (WHERE kind = 'close'), 0) AS returned,
               (array_agg(CAST(payload ->> 'previous_units' AS bigint) ORDER BY seq)
                   FILTER (WHERE kind = 'set_cap'))[1] AS cap
        FROM later
    ), changed AS (
        SELECT release_id,
               coalesce(sum(units) FILTER (WHERE kind = 'operation'), 0) AS charged,
               (array_agg(kind ORDER BY seq) FILTER (WHERE kind IN ('close', 'reopen')))[1] AS next
        FROM later WHERE release_id IS NOT NULL GROUP BY release_id
    ), under_way AS (
        SELECT coalesce(sum(r.spent_units - coalesce(changed.charged, 0)), 0) AS charged
        FROM ledger.reservation AS r LEFT JOIN changed ON changed.release_id = r.release_id
        WHERE r.account = :population_id
            AND (changed.next = 'close' OR changed.next IS NULL AND r.state = 'open')
    )
    SELECT a.population_id, a.unit, a.relation, a.rows_per_unit, a.delta_units,
           coalesce(total.cap, a.cap_units) AS cap_units,
           CAST(a.spent_units - total.charged - under_way.charged AS bigint) AS spent_units,
           CAST(a.reserved_units - total.reserved + total.charged + total.returned
                + under_way.charged AS bigint) AS reserved_units
    FROM ledger.account AS a, total, under_way
    WHERE a.population_id = :population_id
"""


def open_account(
    executor: Executor,
    population_id: UUID,
    *,
    unit: Unit,
    relation: Relation,
    rows_per_unit: int,
    cap_units: int,
    delta_units: int,
) -> LedgerAccount:
    """Open the account of a population. LedgerConflict if it exists already."""
    row = _call(
        executor,
        f"SELECT {_columns(LedgerAccount)} FROM ledger.open_account("
        ":population_id, :unit, :relation, CAST(:rows_per_unit AS integer), :cap_units,"
        " :delta_units)",
        population_id=population_id,
        unit=unit,
        relation=relation,
        rows_per_unit=_whole(rows_per_unit),
        cap_units=_whole(cap_units),
        delta_units=_whole(delta_units),
    ).one()
    return LedgerAccount(**row._mapping)


def set_cap(executor: Executor, population_id: UUID, *, cap_units: int) -> LedgerAccount:
    """Change the cap. Below what is spent and reserved: BudgetExhausted."""
    row = _call(
        executor,
        f"SELECT {_columns(LedgerAccount)} FROM ledger.set_cap(:population_id, :cap_units)",
        population_id=population_id,
        cap_units=_whole(cap_units),
    ).one()
    return LedgerAccount(**row._mapping)


def reserve(
    executor: Executor,
    population_id: UUID,
    *,
    release_id: UUID,
    amount_units: int,
    dataset_hash: bytes,
    spec_hash: bytes,
) -> Reservation:
    """Set budget aside for a release: BudgetExhausted if the account does not cover it.

    A repeated call with the same arguments returns the same reservation; with others: LedgerConflict.
    """
    row = _call(
        executor,
        f"SELECT {_columns(Reservation)} FROM ledger.reserve("
        ":population_id, :release_id, :amount_units, :dataset_hash, :spec_hash)",
        population_id=population_id,
        release_id=release_id,
        amount_units=_whole(amount_units),
        dataset_hash=dataset_hash,
        spec_hash=spec_hash,
    ).one()
    return Reservation(**row._mapping)


def claim(executor: Executor, release_id: UUID, *, holder: str, lease_seconds: float) -> int:
    """Take the lease and return its epoch; LeaseHeld while another lease is active."""
    epoch: int = _scalar(
        executor,
        "SELECT ledger.claim(:release_id, :holder, :lease_seconds)",
        release_id=release_id,
        holder=holder,
        lease_seconds=float(lease_seconds),
    )
    return epoch


def heartbeat(executor: Executor, release_id: UUID, *, epoch: int, lease_seconds: float) -> bool:
    """Renew the lease. False: stop, the lease was taken over or the reservation is closed."""
    return bool(
        _scalar(
            executor,
            "SELECT ledger.heartbeat(:release_id, :epoch, :lease_seconds)",
            release_id=release_id,
            epoch=_whole(epoch),
            lease_seconds=float(lease_seconds),
        )
    )


def commit_operation(
    executor: Executor, release_id: UUID, *, epoch: int, operation: LedgerOperation
) -> None:
    """Charge an operation and store its outcome. Use the outcome only after the commit has returned.

    If the result of the commit was lost, read the journal: AlreadyCommitted means it holds the operation.
    """
    _call(
        executor,
        "SELECT ledger.commit_operation(:release_id, :epoch, :sequence, :kind,"
        " CAST(:asked AS jsonb), :scale, :price_units, :values)",
        release_id=release_id,
        epoch=_whole(epoch),
        sequence=_whole(operation.sequence),
        kind=operation.kind,
        asked=json.dumps(operation.asked, allow_nan=False),
        scale=float(operation.scale),
        price_units=_whole(operation.price_units),
        values=operation.values,
    )


def journal(executor: Executor, release_id: UUID) -> list[LedgerOperation]:
    """Every committed operation of a release, in order."""
    rows = _call(executor, "SELECT * FROM ledger.journal(:release_id)", release_id=release_id).all()
    return [LedgerOperation(**row._mapping) for row in rows]


def finish(executor: Executor, release_id: UUID, *, epoch: int) -> int:
    """End the job: returns the units that go back to the account, 0 if it had ended before."""
    released: int = _scalar(
        executor,
        "SELECT ledger.finish(:release_id, :epoch)",
        release_id=release_id,
        epoch=_whole(epoch),
    )
    return released


def close_unclaimed(executor: Executor, release_id: UUID) -> int:
    """As `finish`, for the service: LeaseHeld while a worker holds the lease."""
    released: int = _scalar(
        executor, "SELECT ledger.close_unclaimed(:release_id)", release_id=release_id
    )
    return released


def reopen(executor: Executor, release_id: UUID) -> int:
    """Reopen a closed reservation: returns the unspent rest, which is reserved again.

    BudgetExhausted if the account does not cover it; LedgerConflict if the reservation is open.
    """
    reserved: int = _scalar(executor, "SELECT ledger.reopen(:release_id)", release_id=release_id)
    return reserved


def account(executor: Executor, population_id: UUID) -> LedgerAccount:
    """The balance of a population."""
    row = _call(
        executor,
        f"SELECT {_columns(LedgerAccount)} FROM ledger.account WHERE population_id = :population_id",
        population_id=population_id,
    ).one_or_none()
    if row is None:
        raise UnknownEntry("no such account")
    return LedgerAccount(**row._mapping)


def account_at(executor: Executor, population_id: UUID, at: datetime) -> LedgerAccount:
    """The balance of a population just before `at`.

    Undoes the later entries on the present balance, so it reads only those, however long the chain
    is. Before the account was opened: its first cap, and nothing spent or reserved. Charges of jobs
    that were running at that moment count as reserved.
    """
    row = _call(executor, _ACCOUNT_AT, population_id=population_id, at=at).one_or_none()
    if row is None:
        raise UnknownEntry("no such account")
    return LedgerAccount(**row._mapping)


def last_midnight(executor: Executor) -> datetime:
    """The start of the day in UTC, by the clock that dates the entries of the ledger."""
    midnight: datetime = _scalar(executor, "SELECT date_trunc('day', clock_timestamp(), 'UTC')")
    return midnight.astimezone(UTC)


def reservation(executor: Executor, release_id: UUID) -> Reservation:
    """The reservation of a release."""
    row = _call(
        executor,
        f"SELECT {_columns(Reservation)} FROM ledger.reservation WHERE release_id = :release_id",
        release_id=release_id,
    ).one_or_none()
    if row is None:
        raise UnknownEntry("no such reservation")
    return Reservation(**row._mapping)


def open_reservations(executor: Executor, population_id: UUID) -> list[UUID]:
    """The releases that may still spend a population's budget."""
    rows = _call(
        executor,
        "SELECT release_id FROM ledger.reservation"
        " WHERE account = :population_id AND state = 'open' ORDER BY release_id",
        population_id=population_id,
    )
    return list(rows.scalars())


def entries(
    executor: Executor, population_id: UUID, *, after: int = 0, limit: int
) -> list[AuditEntry]:
    """A page of the audit: at most `limit` entries whose number is above `after`."""
    rows = _call(
        executor,
        "SELECT seq, at, kind, release_id, operation, units, payload ->> 'digest' AS digest,"
        " previous_hash, hash FROM ledger.audit"
        " WHERE account = :population_id AND seq > :after ORDER BY seq LIMIT :limit",
        population_id=population_id,
        after=after,
        limit=limit,
    ).all()
    return [AuditEntry(**row._mapping) for row in rows]


def _whole(units: int) -> int:
    """Refuse amounts that the database would round or could not store."""
    if type(units) is not int or abs(units) > _LARGEST_BIGINT:
        raise InvalidAmount("amounts are whole numbers of 64 bits")
    return units


def _columns(record: type[Any]) -> str:
    return ", ".join(field.name for field in fields(record))


@cache
def _parsed(statement: str) -> TextClause:
    return text(statement)


def _call(executor: Executor, statement: str, **parameters: Any) -> Result[Any]:
    with translated():
        return executor.execute(_parsed(statement), parameters)


def _scalar(executor: Executor, statement: str, **parameters: Any) -> Any:
    return _call(executor, statement, **parameters).scalar_one()
