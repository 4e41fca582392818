"""Rows of releases, their events and artifacts."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import func, or_, select, text
from sqlalchemy.orm import Session

from service.errors import NotFound
from service.models import ApiKey, Artifact, ReleaseEvent, ReleaseRow
from service.pagination import Paging, newest_first

_SPENT = text("""
    SELECT release_id, spent_units FROM ledger.reservation
    WHERE release_id = ANY(CAST(:ids AS uuid[]))
""")
_ADD_EVENT = text("""
    INSERT INTO release_event (release_id, seq, kind, payload)
    SELECT :release_id, coalesce(max(seq), 0) + 1, :kind, CAST(:payload AS jsonb)
    FROM release_event WHERE release_id = :release_id
""")
MOST_EVENTS = 1000
"""How many events of one release are read at a time."""
_STATES = select(ReleaseRow.id, ReleaseRow.state)
_EVENTS_AFTER = select(ReleaseEvent).from_statement(
    text("""
    SELECT event.* FROM unnest(CAST(:ids AS uuid[]), CAST(:numbers AS bigint[])) AS known (id, seq)
    CROSS JOIN LATERAL (
        SELECT * FROM release_event WHERE release_id = known.id AND seq > known.seq
        ORDER BY seq LIMIT :most
    ) AS event
    ORDER BY event.release_id, event.seq
""")
)


def get(session: Session, release_id: UUID) -> ReleaseRow:
    """One release; NotFound if there is none."""
    return _found(session.get(ReleaseRow, release_id))


def lock(session: Session, release_id: UUID) -> ReleaseRow:
    """One release, fresh and locked. Whoever writes to the ledger too does that before."""
    return _found(
        session.scalar(
            select(ReleaseRow)
            .where(ReleaseRow.id == release_id)
            .with_for_update(key_share=True)
            .execution_options(populate_existing=True)
        )
    )


def page(session: Session, paging: Paging, *, public_only: bool) -> Sequence[ReleaseRow]:
    """A page of releases, or of those that `is_public`, the newest first."""
    statement = select(ReleaseRow)
    if public_only:
        statement = statement.where(ReleaseRow.published, ReleaseRow.state == "succeeded")
    return session.scalars(newest_first(statement, ReleaseRow, paging)).all()


def is_public(release: ReleaseRow) -> bool:
    """Whether analysts may know of a release: it is to be published, and there is something to see."""
    return release.published and release.state == "succeeded"


def unfinished_of(session: Session, dataset_id: UUID) -> Sequence[UUID]:
    """The releases that still need a dataset."""
    return session.scalars(
        select(ReleaseRow.id)
        .where(
            or_(ReleaseRow.dataset_id == dataset_id, ReleaseRow.public_dataset_id == dataset_id),
            ReleaseRow.state.in_(["queued", "running"]),
        )
        .order_by(ReleaseRow.id)
    ).all()


def queued_by(session: Session, key_id: UUID, *, dry_run: bool) -> int:
    """How many releases, or dry runs, of a key are queued; no other can join until the commit."""
    # Locked so that requests at the same moment count one after the other.
    session.execute(select(ApiKey.id).where(ApiKey.id == key_id).with_for_update(key_share=True))
    queued = select(func.count()).where(
        ReleaseRow.state == "queued", ReleaseRow.key_id == key_id, ReleaseRow.dry_run == dry_run
    )
    return session.scalar(queued) or 0


def spent_units(session: Session, release_ids: Iterable[UUID]) -> dict[UUID, int]:
    """What releases have spent, by id; a dry run has no reservation and is left out."""
    rows = session.execute(_SPENT, {"ids": list(release_ids)})
    return {row.release_id: row.spent_units for row in rows}


def artifacts(session: Session, release_ids: Iterable[UUID]) -> dict[UUID, list[Artifact]]:
    """The artifacts of releases, by release, in the order of their names."""
    found: dict[UUID, list[Artifact]] = defaultdict(list)
    wanted = Artifact.release_id.in_(list(release_ids))
    for artifact in session.scalars(select(Artifact).where(wanted).order_by(Artifact.name)):
        found[artifact.release_id].append(artifact)
    return found


def artifact(session: Session, release_id: UUID, name: str) -> Artifact:
    """One artifact of a release; NotFound if there is none of that name."""
    found = session.get(Artifact, (release_id, name))
    if found is None:
        raise NotFound("the release has no artifact of that name; `artifacts` lists what it has")
    return found


def add_event(
    session: Session,
    release: ReleaseRow,
    kind: Literal["progress", "state"],
    payload: dict[str, Any],
) -> None:
    """Tell those who watch. The release must be locked: its events are numbered one by one."""
    parameters = {"release_id": release.id, "kind": kind, "payload": json.dumps(payload)}
    session.execute(_ADD_EVENT, parameters)


def states(session: Session, release_ids: Iterable[UUID]) -> dict[UUID, str]:
    """The states of releases, by id."""
    wanted = ReleaseRow.id.in_(list(release_ids))
    return {row.id: row.state for row in session.execute(_STATES.where(wanted))}


def events_after(session: Session, numbers: Mapping[UUID, int]) -> dict[UUID, list[ReleaseEvent]]:
    """What happened to releases after the events with these numbers, in order, `MOST_EVENTS` each."""
    found: dict[UUID, list[ReleaseEvent]] = defaultdict(list)
    parameters = {"ids": list(numbers), "numbers": list(numbers.values()), "most": MOST_EVENTS}
    for event in session.scalars(_EVENTS_AFTER, parameters):
        found[event.release_id].append(event)
    return found


def _found(release: ReleaseRow | None) -> ReleaseRow:
    if release is None:
        raise NotFound("there is no such release")
    return release
