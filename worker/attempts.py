"""How often a release was tried, as its events tell."""

from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

_ATTEMPTS = text("""
    SELECT count(*) FROM release_event
    WHERE release_id = :id AND kind = 'state' AND payload ->> 'state' = 'running'
""")


def count_attempts(session: Session, release_id: UUID) -> int:
    """How many workers have started on a release."""
    return int(session.scalar(_ATTEMPTS, {"id": release_id}) or 0)
