"""The tasks, by the names that the service sends. Registering them does not import torch."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from celery import Celery
from structlog.typing import FilteringBoundLogger

from service.data.config import Settings
from service.data.context import Context, open_context
from service.data.errors import ArtifactDamaged
from service.data.logging import trace_of
from service.data.task_queue import ANSWER, INGEST, RUN, SAMPLE
from worker.guarded import Guarded

if TYPE_CHECKING:
    from worker.models import ModelCache


class CouldNotAnswer(Exception):
    """A question failed. The service gets no details; the log has them."""


class WorkerResources:
    """Resources that the tasks of one process share, opened by the first task: never before a fork."""

    def __init__(
        self, settings: Settings, log: FilteringBoundLogger, guard: Guarded | None
    ) -> None:
        self.log = log
        self.guard = guard
        self._settings = settings
        self._held = ExitStack()

    def close(self) -> None:
        """Close all resources."""
        self._held.close()

    @cached_property
    def context(self) -> Context:
        """Connections and keys."""
        return self._held.enter_context(open_context(self._settings, self.log))

    @cached_property
    def models(self) -> "ModelCache":
        """Released models."""
        from worker.models import ModelCache

        return ModelCache(self.context)


def register_tasks(app: Celery, resources: WorkerResources) -> None:
    """Register the tasks with the application; releases only if a guard can end them."""
    job = _registrar(app, ignore_result=True)
    question = _registrar(app, ignore_result=False)
    if (guard := resources.guard) is not None:

        @job(RUN)
        def run_release(_release_id: str) -> None:
            from worker.turns import take_turn

            # The id only says which release sent the message. The next release is chosen now.
            with _logged(resources.log, RUN):
                take_turn(resources.context, guard)

    @job(INGEST)
    def ingest_dataset(dataset_id: str) -> None:
        from worker.ingest import ingest_dataset

        with _logged(resources.log, INGEST):
            ingest_dataset(resources.context, UUID(dataset_id))

    @question(ANSWER)
    def answer(release_id: str, workload: list[dict[str, Any]]) -> list[dict[str, Any]]:
        with _logged(resources.log, ANSWER):
            return resources.models.answer(UUID(release_id), workload)
        raise CouldNotAnswer

    @question(SAMPLE)
    def sample(release_id: str, rows: int) -> str:
        with _logged(resources.log, SAMPLE):
            return resources.models.sample(UUID(release_id), rows)
        raise CouldNotAnswer


def _registrar(
    app: Celery, *, ignore_result: bool
) -> Callable[[str], Callable[[Callable[..., Any]], Any]]:
    return lambda name: app.task(name=name, ignore_result=ignore_result)


@contextmanager
def _logged(log: FilteringBoundLogger, task: str) -> Iterator[None]:
    """Log an error by its type and place, and swallow it: Celery would log its message."""
    try:
        yield
    except ArtifactDamaged:
        # Already logged; the service responds with the same problem.
        raise
    except Exception as error:
        log.error("task_failed", task=task, error_type=type(error).__name__, trace=trace_of(error))
