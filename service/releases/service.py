"""Creating, showing and publishing releases."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy.orm import Session

from scrim.spec.budget import rho_of_units
from scrim.spec.errors import SpecError
from scrim.spec.release import ReleaseRequest
from scrim.spec.schema import Schema
from service.data import datasets, populations, releases
from service.data.canonical import canonical_sha256
from service.data.config import Settings
from service.data.declared import schema_of
from service.data.errors import DatasetNotReady, NotFound, QueueFull
from service.data.ledger import repository as ledger
from service.data.ledger.errors import BudgetExhausted
from service.data.ledger.records import LedgerAccount
from service.data.models import DatasetRow, PopulationRow, ReleaseRow
from service.data.pagination import Page, Paging, page_of
from service.data.releases import ShownRelease
from service.data.task_queue import RUN, TaskQueue
from service.data.work import UnitOfWork
from service.idempotency import Attempt, claim_id
from service.keys.schemas import Caller
from service.releases.schemas import ReleaseView
from synth.planning.choice import Resolved, resolve
from synth.planning.forecast import forecast
from synth.planning.forecast_budgets import Budgets
from synth.planning.subject import Subject, subject_of


@dataclass(frozen=True)
class NamedData:
    """The datasets and the population that a request names, and the schemas of the rows."""

    dataset: DatasetRow
    public_dataset: DatasetRow | None
    population: PopulationRow
    subject: Subject
    public_schema: Schema | None


def create(
    work: UnitOfWork,
    body: ReleaseRequest,
    attempt: Attempt,
    task_queue: TaskQueue,
    *,
    settings: Settings,
) -> ReleaseView:
    """Queue a release: its row, its reservation and the record of the request, or none of them.

    The mechanism `auto` is resolved here, once, and stored: a resumed release uses the same choice.
    """
    session = work.session
    release_id, is_known = claim_id(session, attempt, status=202)
    if is_known:
        return view_of(session, release_id)
    named, _, resolved = find_and_resolve(session, body, settings.worker_memory_bytes)
    warnings = budgets_of(named, resolved).warnings(forecast(resolved, named.subject))
    spec = resolved.release
    _require_ready(named, dry_run=body.dry_run)
    _require_room(session, attempt.caller.key_id, settings, dry_run=body.dry_run)
    release = ReleaseRow(
        id=release_id,
        dataset_id=named.dataset.id,
        public_dataset_id=named.public_dataset and named.public_dataset.id,
        population_id=named.population.id,
        key_id=attempt.caller.key_id,
        spec=spec.model_dump(mode="json", exclude_none=True),
        spec_hash=canonical_sha256(spec),
        choice=resolved.choice and resolved.choice.model_dump(mode="json", exclude_none=True),
        columns=resolved.plan.schema.names,
        warnings=[vars(each) for each in warnings],
        units=resolved.funded.units,
        published=body.publish,
        dry_run=body.dry_run,
        rang_at=datetime.now(UTC),
    )
    if not body.dry_run:
        _reserve(session, release, named)
    session.add(release)
    session.flush()
    releases.add_event(session, release, "state", {"state": release.state})
    work.after_commit(lambda: task_queue.send(RUN, str(release_id)))
    return view_of(session, release_id)


def budgets_of(named: NamedData, resolved: Resolved) -> Budgets:
    """The resolved release, to be forecast at other budgets."""
    return Budgets(resolved, named.subject, named.population.delta, named.public_schema)


def publish(session: Session, release_id: UUID) -> ReleaseView:
    """Let analysts see a release, as soon as it has succeeded."""
    release = releases.lock(session, release_id)
    release.published = True
    return view_of(session, release_id)


def find_visible(session: Session, release_id: UUID, caller: Caller) -> ReleaseRow:
    """Return a release that the caller may see; NotFound otherwise."""
    release = releases.get(session, release_id)
    _refuse_hidden(release, caller)
    return release


def show(session: Session, release_id: UUID, caller: Caller) -> ReleaseView:
    """A release that the caller may see, without fields that the caller may not see."""
    release = releases.shown(session, release_id)
    _refuse_hidden(release, caller)
    return shown_to(caller, ReleaseView.of(release))


def view_of(session: Session, release_id: UUID) -> ReleaseView:
    """A release as this transaction has changed it, for curators."""
    session.flush()
    return ReleaseView.of(releases.shown(session, release_id))


def list_page(session: Session, paging: Paging, caller: Caller) -> Page[ReleaseView]:
    """A page of the releases that the caller may see."""
    found = releases.page(session, paging, public_only=not caller.is_curator)
    return page_of(found, paging, lambda each: shown_to(caller, ReleaseView.of(each)))


def shown_to(caller: Caller, view: ReleaseView) -> ReleaseView:
    """A release without fields that the caller may not see."""
    return view if caller.is_curator else view.without_durations()


def _refuse_hidden(release: ReleaseRow | ShownRelease, caller: Caller) -> None:
    if not caller.is_curator and not releases.is_public(release):
        raise NotFound("there is no such release")


def find_and_resolve(
    session: Session, body: ReleaseRequest, memory_bytes: int | None
) -> tuple[NamedData, LedgerAccount, Resolved]:
    """The named datasets, the account, and the resolved request; public data only if it is used."""
    named = _find_named(session, body)
    account = ledger.account(session, named.population.id)
    resolved = resolve(
        body,
        named.subject.schema,
        named.subject.protection,
        named.population.delta,
        public=named.public_schema,
        memory_bytes=memory_bytes,
        left=account.left_units,
    )
    if not resolved.release.mechanism.needs_public_data:
        named = replace(named, public_dataset=None, public_schema=None)
    return named, account, resolved


def _find_named(session: Session, body: ReleaseRequest) -> NamedData:
    """The datasets and the population, held until the transaction ends."""
    dataset = _hold_dataset(session, body.dataset_id)
    if dataset.population_id is None:
        raise SpecError("dataset_id names a public dataset; name a private one")
    population = populations.get(session, dataset.population_id)
    public = _find_public(session, body)
    return NamedData(
        dataset=dataset,
        public_dataset=public,
        population=population,
        subject=subject_of(body, schema_of(dataset), population.protection),
        public_schema=None if public is None else _flat_schema(public),
    )


def _find_public(session: Session, body: ReleaseRequest) -> DatasetRow | None:
    if body.public_dataset_id is None:
        return None
    dataset = _hold_dataset(session, body.public_dataset_id)
    if dataset.visibility != "public":
        raise SpecError("public_dataset_id names a private dataset; name a public one")
    return dataset


def _flat_schema(public: DatasetRow) -> Schema:
    schema = schema_of(public)
    if schema.is_linked:
        raise SpecError("public_dataset_id names groups of individuals; name one table of rows")
    return schema.linked


def _hold_dataset(session: Session, given: str) -> DatasetRow:
    try:
        dataset_id = UUID(given)
    except ValueError:
        raise NotFound("there is no such dataset") from None
    return datasets.hold(session, dataset_id)


def needed_data(named: NamedData, *, dry_run: bool) -> Iterator[tuple[str, DatasetRow]]:
    """The datasets whose rows are read; a dry run reads only public rows."""
    if not dry_run:
        yield "dataset", named.dataset
    if named.public_dataset is not None:
        yield "public dataset", named.public_dataset


def _require_ready(named: NamedData, *, dry_run: bool) -> None:
    for kind, dataset in needed_data(named, dry_run=dry_run):
        if dataset.state != "ready":
            raise DatasetNotReady(
                f"the {kind} {dataset.id} is {dataset.state}; a release needs one that is ready"
            )


def _require_room(session: Session, key_id: UUID, settings: Settings, *, dry_run: bool) -> None:
    """Raise QueueFull if the key has reached its limit of queued releases of this kind."""
    most = settings.max_queued_dry_runs if dry_run else settings.max_queued_releases
    queued = releases.queued_by(session, key_id, dry_run=dry_run)
    if queued >= most:
        kind = "dry runs" if dry_run else "releases"
        raise QueueFull(
            f"this key has {queued} {kind} in the queue, and may have {most}; wait until some "
            "have started, or cancel some"
        )


def _reserve(session: Session, release: ReleaseRow, named: NamedData) -> None:
    try:
        ledger.reserve(
            session,
            release.population_id,
            release_id=release.id,
            amount_units=release.units,
            dataset_hash=datasets.pinned_hash(named.dataset, named.public_dataset),
            spec_hash=release.spec_hash,
        )
    except BudgetExhausted as refusal:
        raise BudgetExhausted(
            f"this release asks for {rho_of_units(release.units):g} rho, more than the population "
            f"has left; ask for less, or see /v1/populations/{release.population_id}"
        ) from refusal
