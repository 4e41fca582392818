"""The Celery application of the workers.

Celery only carries messages and answers of released models. The database records the jobs, their
workers and their results, so a lost or repeated message does no harm.
"""

import os
import signal
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from typing import Any

from celery import Celery, signals
from structlog.typing import FilteringBoundLogger

from service.data.config import Settings
from service.data.parent_death import die_with_parent
from service.data.task_queue import FAST, JOBS
from worker import logs
from worker.guarded import Guarded
from worker.tasks import WorkerResources, register_tasks
from worker.warm import answer_once

LONGEST_JOB_SECONDS = 7 * 24 * 3600
"""Redis delivers a message again after this time; the reaper acts much earlier."""
ANSWER_SECONDS = 60
"""How long an answer is kept for the service that asked."""
START_SECONDS = 60.0
"""How long a new process of the pool may take until it is ready; Celery replaces slower ones."""


@contextmanager
def open_app(
    settings: Settings,
    log: FilteringBoundLogger,
    guard: Guarded | None,
    queues: Collection[str],
) -> Iterator[Celery]:
    """Build an application with its tasks; the processes that run them open the connections.

    At the end, connections of this process are closed. It has some if the pool has no processes.
    """
    with closing(WorkerResources(settings, log, guard)) as resources, _create_app(settings) as app:
        register_tasks(app, resources)
        _connect_signals(log, answers=FAST in queues)
        yield app


def _create_app(settings: Settings) -> Celery:
    broker = str(settings.broker_url)
    app = Celery("scrim", broker=broker, backend=broker, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        task_default_queue=JOBS,
        task_acks_late=True,
        # The reaper, which counts attempts, resends a job that killed its worker.
        task_reject_on_worker_lost=False,
        worker_prefetch_multiplier=1,
        result_expires=ANSWER_SECONDS,
        broker_transport_options={"visibility_timeout": LONGEST_JOB_SECONDS},
        broker_connection_retry_on_startup=True,
        # None: a worker waits for its broker without a limit.
        broker_connection_max_retries=None,
        # Write access to the broker must not allow remote control of the workers.
        worker_enable_remote_control=False,
        worker_redirect_stdouts=False,
        worker_proc_alive_timeout=START_SECONDS,
    )
    return app


def _connect_signals(log: FilteringBoundLogger, *, answers: bool) -> None:
    main = os.getpid()

    def on_logging(**_: Any) -> None:
        logs.install(log)

    def on_process(**_: Any) -> None:
        # In a pool without processes, tasks run in the main process, which has no parent-death signal.
        if os.getpid() != main:
            die_with_parent(signal.SIGKILL, parent=main)
        if answers:
            # After the fork, and before the first question.
            answer_once()

    def on_ready(**_: Any) -> None:
        log.info("worker_ready")

    signals.setup_logging.connect(on_logging, weak=False)
    signals.worker_process_init.connect(on_process, weak=False)
    signals.worker_ready.connect(on_ready, weak=False)
