"""Rows of the ledger as values. Amounts are whole units of 1e-12 rho."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

Unit = Literal["row", "person", "household"]
Relation = Literal["add_remove", "replace_one"]
Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class LedgerAccount:
    """The budget of one population. `delta_units` counts 1e-18."""

    population_id: UUID
    unit: Unit
    relation: Relation
    rows_per_unit: int
    delta_units: int
    cap_units: int
    spent_units: int
    reserved_units: int

    @property
    def left_units(self) -> int:
        """The amount available for a new reservation."""
        return self.cap_units - self.spent_units - self.reserved_units


@dataclass(frozen=True)
class Reservation:
    """The budget of one release, and its lease. Epoch 0: not claimed yet."""

    release_id: UUID
    account: UUID
    amount_units: int
    spent_units: int
    state: Literal["open", "closed"]
    dataset_hash: bytes
    spec_hash: bytes
    lease_epoch: int
    lease_until: datetime | None
    lease_holder: str | None


@dataclass(frozen=True)
class LedgerOperation:
    """One access to the data with its noisy outcome: `values` are little-endian int64s."""

    sequence: int
    kind: str
    asked: Json
    scale: float
    price_units: int
    values: bytes


@dataclass(frozen=True)
class AuditEntry:
    """One change of a balance.

    `units` is the cap, the amount, the price, or the rest that closing returned or reopening reserved.
    """

    seq: int
    at: datetime
    kind: Literal["open_account", "set_cap", "reserve", "operation", "close", "reopen"]
    release_id: UUID | None
    operation: int | None
    units: int
    previous_hash: bytes
    hash: bytes
    digest: str | None = None
    """Digest of an operation and its outcome, in hexadecimal."""
