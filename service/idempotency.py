"""Safe repetition of requests that create something: the same key and body return the same resource."""

import hmac
from dataclasses import dataclass
from uuid import UUID, uuid4

from sqlalchemy import text
from sqlalchemy.orm import Session

from service.data.errors import IdempotencyKeyReused
from service.keys.schemas import Caller

LONGEST_KEY = 200
"""Longest idempotency key."""

_REMEMBER = text("""
    INSERT INTO idempotency (key_id, method_path, key, body_sha256, status, resource_id)
    VALUES (:key_id, :method_path, :key, :body_sha256, :status, :resource_id)
    ON CONFLICT DO NOTHING
""")
_RECALL = text("""
    SELECT body_sha256, resource_id FROM idempotency
    WHERE key_id = :key_id AND method_path = :method_path AND key = :key
""")


@dataclass(frozen=True)
class Attempt:
    """A request that creates something and may be a repetition."""

    caller: Caller
    method_path: str
    key: str | None
    body_sha256: bytes


def claim_id(session: Session, attempt: Attempt, *, status: int) -> tuple[UUID, bool]:
    """Return the id of the resource to create, and whether it exists already.

    The record is committed, or rolled back, together with the resource. A repetition that arrives
    while the first request is still running waits for it here.
    """
    resource_id = uuid4()
    if attempt.key is None:
        return resource_id, False
    name = {
        "key_id": attempt.caller.key_id,
        "method_path": attempt.method_path,
        "key": attempt.key,
    }
    made = session.connection().execute(
        _REMEMBER,
        name | {"body_sha256": attempt.body_sha256, "status": status, "resource_id": resource_id},
    )
    if made.rowcount:
        return resource_id, False
    known = session.execute(_RECALL, name).one()
    if not hmac.compare_digest(known.body_sha256, attempt.body_sha256):
        raise IdempotencyKeyReused(
            "this Idempotency-Key was used with another body; choose a new key for a new request"
        )
    return known.resource_id, True
