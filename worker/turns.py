"""Fair turns: which of the waiting releases a worker carries out next.

A message in the broker means that there is work; the release is chosen here, when a worker is free.
Curators (the keys that asked) take turns, and so do the populations of one curator, so a long queue
of one curator delays another by one release. A release waits if it is queued, or if its worker died
and the reaper has sent its message again since. The reaper ends releases that were tried too
often. The lease decides who gets a release: workers may choose the same one without harm.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from service.data.context import Context
from service.data.logging import trace_of
from worker.crash import crash_at
from worker.errors import OUTAGES
from worker.guarded import Guarded
from worker.lease import DryRunLease
from worker.releases import run_release

_RUNNING_DRY_RUNS = text("SELECT id FROM release WHERE state = 'running' AND dry_run")
# Not FOR UPDATE: the ledger is locked before the release, and its lease already admits one worker.
_NEXT = text("""
    WITH busy AS MATERIALIZED (
        SELECT r.id, r.key_id, r.population_id
        FROM release AS r LEFT JOIN ledger.reservation AS v ON v.release_id = r.id
        WHERE r.state = 'running'
            AND (r.id = ANY(CAST(:held AS uuid[])) OR v.lease_until > clock_timestamp())
    ), line AS MATERIALIZED (
        SELECT DISTINCT state, key_id, population_id, dry_run
        FROM release WHERE state IN ('queued', 'running')
    )
    SELECT oldest.id
    FROM line CROSS JOIN LATERAL (
        SELECT w.id, w.created_at FROM release AS w
        WHERE w.state IN ('queued', 'running')
            AND (w.state, w.key_id, w.population_id, w.dry_run)
                = (line.state, line.key_id, line.population_id, line.dry_run)
            AND (w.state = 'queued' OR (w.rang_at <= w.turn_at) IS NOT TRUE)
            AND w.id <> ALL(CAST(:tried AS uuid[]))
            AND NOT EXISTS (SELECT FROM busy WHERE busy.id = w.id)
        ORDER BY w.created_at, w.id LIMIT 1
    ) AS oldest
    ORDER BY
        (SELECT count(*) FROM busy WHERE busy.key_id = line.key_id),
        (SELECT max(turn_at) FROM release AS r WHERE r.key_id = line.key_id) NULLS FIRST,
        line.dry_run,
        line.state = 'queued',
        (SELECT count(*) FROM busy
         WHERE (busy.key_id, busy.population_id) = (line.key_id, line.population_id)),
        (SELECT max(turn_at) FROM release AS r
         WHERE (r.key_id, r.population_id) = (line.key_id, line.population_id)) NULLS FIRST,
        oldest.created_at,
        oldest.id
    LIMIT 1
""")


def take_turn(context: Context, guard: Guarded) -> None:
    """Carry out the release whose turn it is, if one waits, under the guard."""
    tried: list[UUID] = []
    try:
        while (release_id := _next(context, tried)) is not None:
            crash_at("before-claim")
            with guard.job(release_id):
                if run_release(context, release_id):
                    return
            tried.append(release_id)
    except OUTAGES as error:
        # The reaper resends messages of releases that still wait.
        context.log.warning(
            "turn_abandoned", error_type=type(error).__name__, trace=trace_of(error)
        )


def _next(context: Context, tried: Sequence[UUID]) -> UUID | None:
    with context.transaction() as work:
        return next_release(work.session, tried=tried)


def next_release(session: Session, *, tried: Sequence[UUID] = ()) -> UUID | None:
    """The waiting release whose turn it is, apart from those that were tried.

    First the curator with the fewest running releases, then the one whose last turn is the longest
    ago. Of that curator's releases: real ones before dry runs, interrupted ones before queued ones,
    then the population with the fewest running releases and the oldest turn, then the oldest.
    """
    running = session.scalars(_RUNNING_DRY_RUNS).all()
    held = [each for each in running if DryRunLease.is_held(session, each)]
    found: UUID | None = session.scalar(_NEXT, {"held": held, "tried": list(tried)})
    return found
