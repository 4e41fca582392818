"""Create, check and revoke API keys."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

from sqlalchemy.orm import Session

from service.data import keys
from service.data.errors import Invalid, LastAdminKey, NotFound
from service.data.keys import WorkingKey
from service.data.models import KeyRow
from service.keys.schemas import Scope

PREFIX = "scrim_"
_SECRET_BYTES = 32
"""256 random bits cannot be guessed."""
_PREFIX_LENGTH = len(PREFIX) + 8


def create_key(
    session: Session,
    name: str,
    scopes: Sequence[Scope],
    *,
    expires_at: datetime | None = None,
) -> tuple[KeyRow, str]:
    """Create a key; returns it with its secret, which cannot be read again."""
    if expires_at is not None and expires_at <= datetime.now(UTC):
        raise Invalid("expires_at lies in the past")
    secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    row = KeyRow(
        id=uuid4(),
        name=name,
        prefix=secret[:_PREFIX_LENGTH],
        secret_sha256=_digest(secret),
        scopes=sorted(set(scopes)),
        expires_at=expires_at,
    )
    session.add(row)
    session.flush()
    return row, secret


def find_key(session: Session, secret: str) -> WorkingKey | None:
    """Return the key with this secret, if it is valid."""
    # 256 random bits need no slow hash. The prefix finds the row; the comparison of the digests
    # takes the same time wherever they differ.
    digest = _digest(secret)
    for row in keys.find_by_prefix(session, secret[:_PREFIX_LENGTH]):
        if hmac.compare_digest(row.secret_sha256, digest):
            return row
    return None


def revoke_key(session: Session, key_id: UUID) -> None:
    """Revoke a key. The last admin key that does not expire is kept, as only an admin can create keys."""
    lasting = keys.lock_lasting_admins(session)
    row = keys.get(session, key_id)
    if row is None:
        raise NotFound("there is no such key")
    if [admin.id for admin in lasting] == [key_id]:
        raise LastAdminKey("this is the last admin key; create another one first")
    if row.revoked_at is None:
        row.revoked_at = datetime.now(UTC)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
