"""Repeating a creating request safely: the same key and body lead to the same thing."""

import hmac
from dataclasses import dataclass
from uuid import UUID, uuid4

from sqlalchemy import text
from sqlalchemy.orm import Session

from service.data.errors import IdempotencyKeyReused
from service.keys.schemas import Caller

LONGEST_KEY = 200

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
    """A request that creates something, and may be a repetition."""

    caller: Caller
    method_path: str
    key: str | None
    body_sha256: bytes


def claim_id(session: Session, attempt: Attempt, *, status: int) -> tuple[UUID, bool]:
    """The id of what is to be created, and whether it is there already.

    The record is committed, or rolled back, together with what it is about. A repetition that
    comes while the first request is still under way waits for it here.
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
