"""Rows of API keys."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from service.data.models import KeyRow
from service.data.pagination import Paging, newest_first


@dataclass(frozen=True, slots=True)
class WorkingKey:
    """The fields of a key that every request needs."""

    id: UUID
    name: str
    scopes: Sequence[str]
    secret_sha256: bytes


# Plain SQL, because every request runs one of these: the ORM takes several times as long.
_WORKING = f"""
    SELECT {", ".join(column.name for column in fields(WorkingKey))} FROM api_key
    WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
"""
_BY_PREFIX = text(f"{_WORKING} AND prefix = :prefix")
_BY_SESSION = text(f"""
    {_WORKING}
    AND id = (SELECT key_id FROM console_session WHERE id = :id AND ends_at > now())
""")


def find_by_prefix(session: Session, prefix: str) -> list[WorkingKey]:
    """The valid keys whose secret begins with this prefix."""
    return [
        WorkingKey(*row) for row in session.connection().execute(_BY_PREFIX, {"prefix": prefix})
    ]


def find_signed_in(session: Session, session_id: UUID) -> WorkingKey | None:
    """The key of a console session, if both are still valid."""
    row = session.execute(_BY_SESSION, {"id": session_id}).one_or_none()
    return None if row is None else WorkingKey(*row)


def get(session: Session, key_id: UUID) -> KeyRow | None:
    """One key."""
    return session.get(KeyRow, key_id)


def lock_lasting_admins(session: Session) -> Sequence[KeyRow]:
    """The admin keys that neither expire nor are revoked, locked against changes."""
    return session.scalars(
        select(KeyRow)
        .where(
            KeyRow.scopes.contains(["admin"]),
            KeyRow.revoked_at.is_(None),
            KeyRow.expires_at.is_(None),
        )
        .order_by(KeyRow.id)
        .with_for_update()
    ).all()


def page(session: Session, paging: Paging) -> Sequence[KeyRow]:
    """A page of keys, the newest first."""
    return session.scalars(newest_first(select(KeyRow), KeyRow, paging)).all()
