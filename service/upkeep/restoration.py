"""Going on with a database that is not the newest one, because the newest one is lost.

What was released since the backup was released, and no database knows what it cost. What can still
be promised: before the loss, spending was within the cap. So nothing more may be spent on the
populations concerned. Their unfinished releases end, because their journals are behind and resuming
them would draw noise twice; their caps fall to what is spent; and the result is anchored.
"""

from dataclasses import dataclass
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import text
from sqlalchemy.orm import Session

from service.data import progress
from service.data.context import Context
from service.data.ledger import repository as ledger
from service.data.ledger.anchor import ANCHOR_LOCK, ChainHead, read_heads, seal, unseal
from service.data.ledger.errors import AnchorMissing


@dataclass(frozen=True)
class Loss:
    """A population that this database knows less, or something else, about than was anchored."""

    population_id: UUID
    anchored_entries: int
    entries: int
    """How many entries this database has; none, if it does not know the population."""


def find_losses(context: Context) -> list[Loss]:
    """The populations whose anchored entry this database lacks; AnchorMissing if none was kept."""
    known = context.anchor_store.read()
    if known is None:
        raise AnchorMissing("there is no anchor, so nothing tells how new the database must be")
    anchored = unseal(known.document, context.signing_key.public_key())
    with context.transaction() as work:
        heads = {head.population_id: head.seq for head in read_heads(work.session.connection())}
        return [
            Loss(head.population_id, head.seq, heads.get(head.population_id, 0))
            for head in anchored
            if not _has_entry(work.session, head)
        ]


def close_population(session: Session, population_id: UUID) -> None:
    """Let nothing more be spent on a population. LeaseHeld while a worker is on a release of it."""
    for release_id in ledger.open_reservations(session, population_id):
        ledger.close_unclaimed(session, release_id)
        progress.finish(session, release_id, "cancelled")
    spent = ledger.account(session, population_id).spent_units
    # A cap is positive: one unit is 1e-12 rho, which no release can do anything with.
    ledger.set_cap(session, population_id, cap_units=max(spent, 1))


def replace_anchor(context: Context, key: Ed25519PrivateKey) -> None:
    """Anchor this database whatever was anchored before: the caller must have dealt with that."""
    with context.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ANCHOR_LOCK})
        known = context.anchor_store.read()
        context.anchor_store.replace(known, seal(read_heads(connection), key))


def _has_entry(session: Session, head: ChainHead) -> bool:
    found = ledger.entries(session, head.population_id, after=head.seq - 1, limit=1)
    return [(entry.seq, entry.hash) for entry in found] == [(head.seq, head.hash)]
