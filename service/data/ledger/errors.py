"""Errors of the ledger.

    LedgerError
    ├── BudgetExhausted      SC001  the account or the reservation does not cover the amount
    ├── StaleLease           SC002  another worker took over, or the service closed the reservation
    ├── LeaseHeld            SC009  a worker holds the lease
    ├── LedgerConflict       SC003  the same id with other arguments
    ├── OutOfOrder           SC004  an earlier operation is missing
    │   └── AlreadyCommitted SC008  the journal holds this operation
    ├── Closed               SC005  the reservation accepts nothing more
    ├── UnknownEntry         SC006  no such account or reservation
    ├── InvalidAmount        SC007  not a positive, finite amount
    └── AnchorError                 the database cannot be trusted to be the newest one
        ├── AnchorMissing           there are accounts, but nothing was anchored
        ├── AnchorForged            not signed by our key, or not in our format
        ├── AnchorMoved             another process has written it since we read it
        ├── AnchorUnreachable       the place where it is kept cannot be used
        └── DatabaseBehind          older than, or different from, what was anchored

A refusal by the database aborts its transaction; the unit of work rolls it back.
"""

# The names say what was refused, without the suffix Error.

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError


class LedgerError(Exception):
    """Base class of the ledger's errors."""


class BudgetExhausted(LedgerError):
    """The account or the reservation does not cover the amount."""


class StaleLease(LedgerError):
    """The caller's lease is not the current one."""


class LeaseHeld(LedgerError):
    """A worker holds the lease."""


class LedgerConflict(LedgerError):
    """The same id was used with other arguments."""


class OutOfOrder(LedgerError):
    """The operation is not the next one."""


class AlreadyCommitted(OutOfOrder):
    """The journal holds this operation."""


class Closed(LedgerError):
    """The reservation accepts nothing more."""


class UnknownEntry(LedgerError):
    """There is no such account or reservation."""


class InvalidAmount(LedgerError):
    """Not a positive, finite amount."""


class AnchorError(LedgerError):
    """The database cannot be trusted to be the newest one."""


class AnchorMissing(AnchorError):
    """There are accounts, but nothing was anchored."""


class AnchorForged(AnchorError):
    """The anchor is not signed by our key, or not in our format."""


class AnchorMoved(AnchorError):
    """Another process has written the anchor since we read it."""


class AnchorUnreachable(AnchorError):
    """The place where the anchor is kept cannot be used."""


class DatabaseBehind(AnchorError):
    """The database is older than, or different from, what was anchored."""


_BY_SQLSTATE: dict[str, type[LedgerError]] = {
    "SC000": LedgerError,
    "SC001": BudgetExhausted,
    "SC002": StaleLease,
    "SC003": LedgerConflict,
    "SC004": OutOfOrder,
    "SC005": Closed,
    "SC006": UnknownEntry,
    "SC007": InvalidAmount,
    "SC008": AlreadyCommitted,
    "SC009": LeaseHeld,
}


@contextmanager
def translated() -> Iterator[None]:
    """Turn the ledger's SQLSTATEs into its exceptions; let everything else pass."""
    try:
        yield
    except DBAPIError as error:
        refusal = _BY_SQLSTATE.get(getattr(error.orig, "sqlstate", None) or "")
        if refusal is None:
            raise
        diagnosis = getattr(error.orig, "diag", None)
        raise refusal(getattr(diagnosis, "message_primary", "")) from error
