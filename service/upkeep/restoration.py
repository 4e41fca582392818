"""Recovery with a database that is not the newest one, because the newest one is lost.

Releases made after the backup are out, and their cost is unknown. It is only known that spending was
within the cap before the loss. So nothing more may be spent on the affected populations.
Their unfinished releases end, because their journals are behind and resuming them would draw noise
twice; their caps are lowered to what is spent; and the result is anchored.
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
    """A population whose ledger here is behind, or differs from, the anchored one."""

    population_id: UUID
    anchored_entries: int
    entries: int
    """Number of entries in this database; 0 if it does not contain the population."""


def find_losses(context: Context) -> list[Loss]:
    """The populations whose anchored entry is missing here; AnchorMissing if there is no anchor."""
    known = context.anchor_store.read()
    if known is None:
        raise AnchorMissing("there is no anchor to compare the database with")
    anchored = unseal(known.document, context.signing_key.public_key())
    with context.transaction() as work:
        heads = {head.population_id: head.seq for head in read_heads(work.session.connection())}
        return [
            Loss(head.population_id, head.seq, heads.get(head.population_id, 0))
            for head in anchored
            if not _has_entry(work.session, head)
        ]


def close_population(session: Session, population_id: UUID) -> None:
    """Stop all spending on a population. LeaseHeld while a worker runs one of its releases."""
    for release_id in ledger.open_reservations(session, population_id):
        ledger.close_unclaimed(session, release_id)
        progress.finish(session, release_id, "cancelled")
    spent = ledger.account(session, population_id).spent_units
    # A cap must be positive: one unit, 1e-12 rho, is too small for any release.
    ledger.set_cap(session, population_id, cap_units=max(spent, 1))


def replace_anchor(context: Context, key: Ed25519PrivateKey) -> None:
    """Anchor this database, whatever was anchored before; the caller must handle any losses first."""
    with context.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ANCHOR_LOCK})
        known = context.anchor_store.read()
        context.anchor_store.replace(known, seal(read_heads(connection), key))


def _has_entry(session: Session, head: ChainHead) -> bool:
    found = ledger.entries(session, head.population_id, after=head.seq - 1, limit=1)
    return [(entry.seq, entry.hash) for entry in found] == [(head.seq, head.hash)]
