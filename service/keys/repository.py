"""Rows of API keys."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session

from service.models import ApiKey, ConsoleSession
from service.pagination import Paging, newest_first


def find_by_prefix(session: Session, prefix: str) -> Sequence[ApiKey]:
    """The keys that work now and whose secret begins like this."""
    return session.scalars(_working().where(ApiKey.prefix == prefix)).all()


def find_signed_in(session: Session, session_id: UUID) -> ApiKey | None:
    """The key that a session of the console was begun with, if both are still valid."""
    return session.scalar(
        _working()
        .join(ConsoleSession, ConsoleSession.key_id == ApiKey.id)
        .where(ConsoleSession.id == session_id, ConsoleSession.ends_at > func.now())
    )


def get(session: Session, key_id: UUID) -> ApiKey | None:
    """One key."""
    return session.get(ApiKey, key_id)


def lock_lasting_admins(session: Session) -> Sequence[ApiKey]:
    """The admin keys that neither expire nor are revoked, locked against changes."""
    return session.scalars(
        select(ApiKey)
        .where(
            ApiKey.scopes.contains(["admin"]),
            ApiKey.revoked_at.is_(None),
            ApiKey.expires_at.is_(None),
        )
        .order_by(ApiKey.id)
        .with_for_update()
    ).all()


def page(session: Session, paging: Paging) -> Sequence[ApiKey]:
    """A page of keys, the newest first."""
    return session.scalars(newest_first(select(ApiKey), ApiKey, paging)).all()


def _working() -> Select[ApiKey]:
    """The keys that are neither revoked nor expired."""
    lasts = or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > func.now())
    return select(ApiKey).where(ApiKey.revoked_at.is_(None), lasts)
