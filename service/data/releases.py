"""Rows of releases, their events and artifacts."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import JSON, Select, bindparam, column, func, or_, select, table, text
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.orm import Session

from service.data.errors import NotFound
from service.data.models import ArtifactRow, KeyRow, PopulationRow, ReleaseEvent, ReleaseRow
from service.data.pagination import Paging, newest_first

_ADD_EVENT = text("""
    INSERT INTO release_event (release_id, seq, kind, payload)
    SELECT :release_id, coalesce(max(seq), 0) + 1, :kind, CAST(:payload AS jsonb)
    FROM release_event WHERE release_id = :release_id
""")
Found = TypeVar("Found", ReleaseRow, "ShownRelease")

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


class ShownRelease(NamedTuple):
    """A release as responses show it. A tuple for speed, because a page has many of them."""

    id: UUID
    dataset_id: UUID
    public_dataset_id: UUID | None
    population_id: UUID
    spec: dict[str, Any]
    choice: dict[str, Any] | None
    columns: list[str]
    warnings: list[dict[str, Any]]
    units: int
    state: str
    published: bool
    dry_run: bool
    cancel_requested: bool
    error: dict[str, Any] | None
    quality: dict[str, Any] | None
    progress_done: int
    progress_total: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    spent_units: int
    """0 for a dry run, which has no reservation."""
    delta: float
    """The population's delta."""
    artifacts: list[dict[str, Any]]
    """Name, size, hash in hex and media type, in the order of the names."""


def _select_shown() -> Select[Any]:
    """Releases as responses show them, in one statement, so that all values are from the same moment."""
    release, artifact = ReleaseRow.__table__, ArtifactRow.__table__
    reservation = table("reservation", column("release_id"), column("spent_units"), schema="ledger")
    spent = select(reservation.c.spent_units).where(reservation.c.release_id == release.c.id)
    population = PopulationRow.__table__
    delta = select(population.c.delta).where(population.c.id == release.c.population_id)
    described = func.json_build_object(
        "name",
        artifact.c.name,
        "size",
        artifact.c.size,
        "sha256",
        func.encode(artifact.c.sha256, "hex"),
        "media_type",
        artifact.c.media_type,
    )
    artifacts = select(
        func.json_agg(aggregate_order_by(described, artifact.c.name), type_=JSON)
    ).where(artifact.c.release_id == release.c.id)
    derived = {
        "spent_units": func.coalesce(spent.scalar_subquery(), 0),
        "delta": delta.scalar_subquery(),
        "artifacts": func.coalesce(artifacts.scalar_subquery(), text("'[]'"), type_=JSON),
    }
    return select(
        *(
            derived[name].label(name) if name in derived else release.c[name]
            for name in ShownRelease._fields
        )
    )


_SHOWN_RELEASES = _select_shown()
_SHOWN_RELEASE = _SHOWN_RELEASES.where(ReleaseRow.__table__.c.id == bindparam("id"))


def get(session: Session, release_id: UUID) -> ReleaseRow:
    """One release; NotFound if there is none."""
    return _found(session.get(ReleaseRow, release_id))


def lock(session: Session, release_id: UUID) -> ReleaseRow:
    """One release, refreshed and locked. A transaction that also writes to the ledger does so before."""
    return _found(
        session.scalar(
            select(ReleaseRow)
            .where(ReleaseRow.id == release_id)
            .with_for_update(key_share=True)
            .execution_options(populate_existing=True)
        )
    )


def shown(session: Session, release_id: UUID) -> ShownRelease:
    """One release as responses show it; NotFound if there is none."""
    row = session.execute(_SHOWN_RELEASE, {"id": release_id}).one_or_none()
    return _found(None if row is None else ShownRelease._make(row))


def page(session: Session, paging: Paging, *, public_only: bool) -> Sequence[ShownRelease]:
    """A page of releases, or of those that `is_public`, the newest first."""
    release, statement = ReleaseRow.__table__.c, _SHOWN_RELEASES
    if public_only:
        statement = statement.where(release.published, release.state == "succeeded")
    rows = session.execute(newest_first(statement, ReleaseRow, paging))
    return [ShownRelease._make(row) for row in rows]


def is_public(release: ReleaseRow | ShownRelease) -> bool:
    """Whether analysts may see a release: it is to be published, and it has results."""
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
    """Number of queued releases, or dry runs, of a key; no other can be queued until the commit."""
    # Locked so that concurrent requests are counted one after the other.
    session.execute(select(KeyRow.id).where(KeyRow.id == key_id).with_for_update(key_share=True))
    queued = select(func.count()).where(
        ReleaseRow.state == "queued", ReleaseRow.key_id == key_id, ReleaseRow.dry_run == dry_run
    )
    return session.scalar(queued) or 0


def artifact(session: Session, release_id: UUID, name: str) -> ArtifactRow:
    """One artifact of a release; NotFound if there is none of that name."""
    found = session.get(ArtifactRow, (release_id, name))
    if found is None:
        raise NotFound("the release has no artifact of that name; `artifacts` lists what it has")
    return found


def add_event(
    session: Session,
    release: ReleaseRow,
    kind: Literal["progress", "state"],
    payload: dict[str, Any],
) -> None:
    """Add an event. The release must be locked, because its events are numbered consecutively."""
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


def _found(release: Found | None) -> Found:
    if release is None:
        raise NotFound("there is no such release")
    return release
