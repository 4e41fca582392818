"""Verification of the audit: recompute every hash, and derive every balance from the entries.

The entries alone determine each account, reservation and operation. One pass replays them and
compares, so it detects an edit anywhere in the ledger, not only in the audit itself.
"""

import hashlib
import json
import struct
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, Row, text

from service.data.ledger.records import LedgerAccount
from service.data.ledger.repository import account as read_account

GENESIS = bytes(32)
"""The previous hash of an account's first entry."""

_BATCH = 1000
"""Entries that are read at a time."""

# The database computes the digests of outcomes, which can be large.
_CHAINED_ENTRIES = text("""
    SELECT a.seq, a.at, a.kind, a.release_id, a.operation, a.units, a.payload::text AS payload,
           a.previous_hash, a.hash,
           o.kind AS operation_kind, o.scale, o.price_units, o.asked::text AS asked,
           sha256(v."values") AS values_hash
    FROM ledger.audit AS a
    LEFT JOIN ledger.operation AS o ON o.release_id = a.release_id AND o.sequence = a.operation
    LEFT JOIN ledger.outcome AS v ON v.release_id = a.release_id AND v.sequence = a.operation
    WHERE a.account = :population_id
    ORDER BY a.seq
""")
_RESERVATIONS = text("""
    SELECT r.release_id, r.amount_units, r.spent_units, r.state, r.dataset_hash, r.spec_hash,
           (SELECT count(*) FROM ledger.operation AS o WHERE o.release_id = r.release_id)
               AS operations
    FROM ledger.reservation AS r
    WHERE r.account = :population_id
""")


class _ChainError(Exception):
    """The first difference from the entries."""


@dataclass(frozen=True)
class ChainReport:
    """The result of the check. `entries` and `head` cover the valid part."""

    entries: int
    head: bytes
    fault: str | None

    @property
    def ok(self) -> bool:
        """Whether nothing was changed."""
        return self.fault is None


@dataclass
class _Replayed:
    """A reservation, as derived from the entries."""

    amount_units: int
    dataset_hash: str
    spec_hash: str
    spent_units: int = 0
    operations: int = 0
    state: str = "open"

    @property
    def held_units(self) -> int:
        return self.amount_units - self.spent_units if self.state == "open" else 0


@dataclass
class _Replay:
    """An account, as derived from the entries."""

    population_id: UUID
    entries: int = 0
    head: bytes = GENESIS
    identity: dict[str, Any] = field(default_factory=dict)
    cap_units: int = 0
    reservations: dict[UUID, _Replayed] = field(default_factory=dict)

    def add(self, entry: Row[Any]) -> None:
        """Check one entry against its predecessor and apply it."""
        follows = (
            entry.seq == self.entries + 1
            and entry.previous_hash == self.head
            and entry.hash == _entry_hash(self.population_id, entry)
        )
        if not follows:
            raise _ChainError(f"entry {self.entries + 1} does not follow from its predecessor")
        try:
            is_sound = self._apply(entry, json.loads(entry.payload))
        except (KeyError, TypeError):
            is_sound = False
        if not is_sound:
            raise _ChainError(f"entry {entry.seq} differs from what it is about")
        self.entries, self.head = entry.seq, entry.hash

    def _apply(self, entry: Row[Any], payload: dict[str, Any]) -> bool:
        match entry.kind:
            case "open_account":
                self.identity, self.cap_units = payload, entry.units
                return bool(entry.seq == 1)
            case "set_cap":
                self.cap_units = entry.units
                return True
            case "reserve":
                is_new = entry.release_id not in self.reservations
                self.reservations[entry.release_id] = _Replayed(entry.units, **payload)
                return is_new
            case "operation":
                reservation = self.reservations[entry.release_id]
                is_next = (reservation.state, reservation.operations) == ("open", entry.operation)
                reservation.spent_units += entry.units
                reservation.operations += 1
                return is_next and _stands(entry, payload["digest"])
            case "close":
                reservation = self.reservations[entry.release_id]
                returned = reservation.held_units
                reservation.state = "closed"
                return bool(returned == entry.units)
            case "reopen":
                reservation = self.reservations[entry.release_id]
                was_closed = reservation.state == "closed"
                reservation.state = "open"
                return bool(was_closed and reservation.held_units == entry.units)
            case _:
                return False

    def compare(self, account: LedgerAccount, reservations: Iterable[Row[Any]]) -> None:
        """Check the tables against the replay."""
        if {row.release_id: _as_replayed(row) for row in reservations} != self.reservations:
            raise _ChainError("the reservations differ from the audit")
        spent = sum(each.spent_units for each in self.reservations.values())
        held = sum(each.held_units for each in self.reservations.values())
        expected = self.identity | {
            "population_id": self.population_id,
            "cap_units": self.cap_units,
            "spent_units": spent,
            "reserved_units": held,
        }
        if asdict(account) != expected or spent + held > self.cap_units:
            raise _ChainError("the account differs from the audit")


def verify_chain(engine: Engine, population_id: UUID) -> ChainReport:
    """Recompute the chain of a population and everything that follows from it.

    Runs in its own snapshot, so that jobs can continue. An attacker who can rewrite the whole
    database can also rewrite the chain: only the anchor detects that.
    """
    snapshot = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with snapshot.connect() as connection:
        return _verify(connection, population_id)


def _verify(connection: Connection, population_id: UUID) -> ChainReport:
    account = read_account(connection, population_id)
    parameters = {"population_id": population_id}
    replay = _Replay(population_id)
    fault = None
    try:
        with connection.execute(
            _CHAINED_ENTRIES, parameters, execution_options={"yield_per": _BATCH}
        ) as entries:
            for entry in entries:
                replay.add(entry)
        replay.compare(account, connection.execute(_RESERVATIONS, parameters))
    except _ChainError as found:
        fault = str(found)
    return ChainReport(replay.entries, replay.head, fault)


def _as_replayed(row: Row[Any]) -> _Replayed:
    return _Replayed(
        amount_units=row.amount_units,
        dataset_hash=row.dataset_hash.hex(),
        spec_hash=row.spec_hash.hex(),
        spent_units=row.spent_units,
        operations=row.operations,
        state=row.state,
    )


def _entry_hash(population_id: UUID, entry: Row[Any]) -> bytes:
    """As ledger.audit_hash."""
    return hashlib.sha256(
        entry.previous_hash
        + _lines(
            "scrim-audit-1",
            population_id,
            entry.seq,
            _moment(entry.at),
            entry.kind,
            "-" if entry.release_id is None else entry.release_id,
            "-" if entry.operation is None else entry.operation,
            entry.units,
            entry.payload,
        )
    ).digest()


def _stands(entry: Row[Any], digest: str) -> bool:
    """Whether the operation of an entry still exists, unchanged."""
    is_whole = entry.price_units == entry.units and entry.values_hash is not None
    return is_whole and _operation_digest(entry) == digest


def _operation_digest(entry: Row[Any]) -> str:
    """As ledger.operation_digest, in hexadecimal."""
    return hashlib.sha256(
        _lines(
            "scrim-operation-1",
            entry.release_id,
            entry.operation,
            entry.operation_kind,
            struct.pack(">d", entry.scale).hex(),
            entry.price_units,
            entry.values_hash.hex(),
            entry.asked,
        )
    ).hexdigest()


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _lines(*parts: object) -> bytes:
    return "\n".join(str(part) for part in parts).encode()
