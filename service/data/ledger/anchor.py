"""The anchor: the head of every account's chain, signed and kept outside the database.

A restored backup has a valid chain but an old head, and would silently return budget. The
anchor is written after the database's commit, so the database may be ahead of it, never behind.
Entries committed after the last anchor are not protected: advance the anchor before a release.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from sqlalchemy import Connection, Engine, text

from service.data.ledger.anchor_store import Anchored, AnchorStore
from service.data.ledger.errors import AnchorForged, AnchorMissing, DatabaseBehind

# A writer of the anchor holds this lock, so that writers rarely conflict.
ANCHOR_LOCK = 0x5C21_3A12

_HEADS = text("""
    SELECT population_id, seq, hash
    FROM ledger.account
    CROSS JOIN LATERAL (
        SELECT seq, hash FROM ledger.audit WHERE account = population_id
        ORDER BY seq DESC LIMIT 1
    ) AS head
    ORDER BY population_id
""")
_ANCHORED_NOW = text("""
    SELECT anchored.population_id, audit.hash
    FROM unnest(CAST(:populations AS uuid[]), CAST(:seqs AS bigint[]))
        AS anchored (population_id, seq)
    LEFT JOIN ledger.audit
        ON audit.account = anchored.population_id AND audit.seq = anchored.seq
""")


@dataclass(frozen=True)
class ChainHead:
    """The newest entry of one account's audit."""

    population_id: UUID
    seq: int
    hash: bytes


def read_heads(connection: Connection) -> tuple[ChainHead, ...]:
    """The heads of all chains, ordered by population."""
    return tuple(ChainHead(**row._mapping) for row in connection.execute(_HEADS))


def seal(heads: tuple[ChainHead, ...], key: Ed25519PrivateKey) -> bytes:
    """Build the signed document that anchors `heads`."""
    digest = _digest(heads)
    document = {
        "heads": [[str(head.population_id), head.seq, head.hash.hex()] for head in heads],
        "digest": digest.hex(),
        "signature": key.sign(digest).hex(),
    }
    return json.dumps(document, indent=1).encode()


def unseal(document: bytes, key: Ed25519PublicKey) -> tuple[ChainHead, ...]:
    """Return the heads in a document that `key` signed; AnchorForged otherwise."""
    try:
        content: dict[str, Any] = json.loads(document)
        heads = tuple(
            ChainHead(UUID(population), int(seq), bytes.fromhex(hash_))
            for population, seq, hash_ in content["heads"]
        )
        key.verify(bytes.fromhex(content["signature"]), _digest(heads))
    except (InvalidSignature, ValueError, KeyError, TypeError) as error:
        raise AnchorForged("the anchor was not signed by this service") from error
    return heads


def check_anchor(engine: Engine, store: AnchorStore, *, key: Ed25519PublicKey) -> None:
    """Refuse a database that is older than, or different from, what was anchored.

    Without an anchor only a ledger without accounts passes; anchor it before the first account.
    """
    # Read the anchor before the database, so that the database can only be newer.
    known = store.read()
    with engine.connect() as connection:
        _check(connection, known, key)


def advance_anchor(engine: Engine, store: AnchorStore, *, key: Ed25519PrivateKey) -> None:
    """Anchor what is committed now. Refuses as `check_anchor`, so it never hides a rollback."""
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ANCHOR_LOCK})
        known = store.read()
        _check(connection, known, key.public_key())
        store.replace(known, seal(read_heads(connection), key))


def _check(connection: Connection, known: Anchored | None, key: Ed25519PublicKey) -> None:
    if known is None:
        if read_heads(connection):
            raise AnchorMissing("the ledger has accounts, but there is no anchor for them")
        return
    anchored = unseal(known.document, key)
    found = connection.execute(
        _ANCHORED_NOW,
        {
            "populations": [head.population_id for head in anchored],
            "seqs": [head.seq for head in anchored],
        },
    )
    hashes = {row.population_id: row.hash for row in found}
    for head in anchored:
        if hashes[head.population_id] is None:
            raise DatabaseBehind(
                f"population {head.population_id}: entry {head.seq} was anchored, but is missing"
            )
        if hashes[head.population_id] != head.hash:
            raise DatabaseBehind(
                f"population {head.population_id}: entry {head.seq} is not the one anchored"
            )


def _digest(heads: tuple[ChainHead, ...]) -> bytes:
    """One digest over all heads; it includes its purpose, so the signature is valid for no other."""
    digest = hashlib.sha256(b"scrim-anchor-1\n")
    for head in heads:
        digest.update(f"{head.population_id} {head.seq} {head.hash.hex()}\n".encode())
    return digest.digest()
