"""Rows of sessions. A session whose row is deleted has ended, even if a browser keeps its cookie."""

from datetime import UTC, datetime
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.orm import Session as DatabaseSession

from service.console.sessions import Session
from service.data.models import ConsoleSession


def add(database: DatabaseSession, session: Session, key_id: UUID) -> None:
    """Record a session that was begun with a key; delete expired sessions."""
    database.execute(sa.delete(ConsoleSession).where(ConsoleSession.ends_at <= sa.func.now()))
    ends_at = datetime.fromtimestamp(session.ends_at, UTC)
    database.add(ConsoleSession(id=session.id, key_id=key_id, ends_at=ends_at))


def delete(database: DatabaseSession, session: Session) -> None:
    """End a session."""
    database.execute(sa.delete(ConsoleSession).where(ConsoleSession.id == session.id))
