"""Questions to a released model: answered by a worker, at no cost, from what was released."""

from typing import Any
from uuid import UUID

from fastapi.concurrency import run_in_threadpool
from sqlalchemy.orm import Session

from scrim.spec.errors import SpecError
from scrim.spec.question import MAX_SAMPLE_ROWS, Question, SampleRequest
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from scrim.spec.workload import columns_named, expand
from service.data import datasets, populations
from service.data.context import Context
from service.data.declared import schema_of
from service.data.errors import FieldProblem, Invalid, ReleaseNotFinished
from service.data.models import ReleaseRow
from service.data.task_queue import ANSWER, SAMPLE
from service.keys.schemas import Caller
from service.releases.schemas import MAX_ANSWERS, ModelAnswers
from service.releases.service import find_visible
from synth.planning.plan import refuse_types, refuse_unreadable
from synth.planning.subject import Subject, subject_of


async def answer(
    context: Context, release_id: UUID, caller: Caller, question: Question
) -> ModelAnswers:
    """Answers to a workload, from the model."""
    await run_in_threadpool(_check_question, context, release_id, caller, question)
    workload = [item.model_dump(mode="json", exclude_none=True) for item in question.workload]
    found = await _ask(context, ANSWER, str(release_id), workload)
    return ModelAnswers(items=found)


async def sample(context: Context, release_id: UUID, caller: Caller, wanted: SampleRequest) -> str:
    """Fresh rows from the model, as CSV."""
    await run_in_threadpool(_check_sample, context, release_id, caller, wanted)
    return str(await _ask(context, SAMPLE, str(release_id), wanted.rows))


async def _ask(context: Context, task: str, *args: Any) -> Any:
    timeout = context.settings.model_timeout_seconds
    return await context.task_queue.ask(task, *args, timeout=timeout)


def _check_question(context: Context, release_id: UUID, caller: Caller, question: Question) -> None:
    with context.transaction() as work:
        release = _finished(find_visible(work.session, release_id, caller))
        declared = _subject(work.session, release).schema
    schema = declared.project(release.columns)
    _refuse_unreleased(question, declared, schema)
    _refuse_impossible(question, ReleaseSpec.model_validate(release.spec), schema)


def _refuse_unreleased(question: Question, declared: Schema, released: Schema) -> None:
    """Refuse questions about declared columns that are not part of the release."""
    left_out = set(declared.names) - set(released.names)
    for name in columns_named(question.workload):
        if name in left_out:
            raise SpecError(
                f"column {name!r} is not part of this release; to include it in a new release, ask about "
                "it in the workload or name it in outputs.columns"
            )


def _refuse_impossible(question: Question, release: ReleaseSpec, schema: Schema) -> None:
    """Refuse a workload that the model cannot answer, or that is too large for one response."""
    refuse_types(question.workload, release.mechanism, linked=schema.is_linked)
    blocks = expand(question.workload, schema)
    refuse_unreadable(blocks, release.mechanism)
    if sum(block.size(schema) for block in blocks) > MAX_ANSWERS:
        message = (
            f"the workload has more than {MAX_ANSWERS:,} queries; ask for fewer or smaller marginals, "
            "or for `outputs.answers` in a release"
        )
        raise Invalid(message, errors=[FieldProblem(loc=["body", "workload"], message=message)])


def _check_sample(
    context: Context, release_id: UUID, caller: Caller, wanted: SampleRequest
) -> None:
    with context.transaction() as work:
        release = _finished(find_visible(work.session, release_id, caller))
        schema = _subject(work.session, release).schema
    if ReleaseSpec.model_validate(release.spec).synthetic_rows is None:
        raise SpecError("this release has only answers, and no model to draw rows from")
    if wanted.rows * schema.places > MAX_SAMPLE_ROWS:
        message = (
            f"a group may have {schema.places} individuals, and an answer {MAX_SAMPLE_ROWS:,} "
            f"rows; draw at most {MAX_SAMPLE_ROWS // schema.places:,} groups at once"
        )
        raise Invalid(message, errors=[FieldProblem(loc=["body", "rows"], message=message)])


def _subject(session: Session, release: ReleaseRow) -> Subject:
    """The declared rows of a release and their protection."""
    return subject_of(
        ReleaseSpec.model_validate(release.spec),
        schema_of(datasets.get(session, release.dataset_id)),
        populations.get(session, release.population_id).protection,
    )


def _finished(release: ReleaseRow) -> ReleaseRow:
    if release.state != "succeeded":
        raise ReleaseNotFinished(f"the release is {release.state}; it has no model to ask")
    return release
