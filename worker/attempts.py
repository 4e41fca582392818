"""The number of attempts at a release, from its events."""

from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

_ATTEMPTS = text("""
    SELECT count(*) FROM release_event
    WHERE release_id = :id AND kind = 'state' AND payload ->> 'state' = 'running'
""")


def count_attempts(session: Session, release_id: UUID) -> int:
    """Count the workers that have started a release."""
    return int(session.scalar(_ATTEMPTS, {"id": release_id}) or 0)
