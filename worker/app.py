"""The Celery application of the workers.

Celery only carries messages and answers of released models: which jobs there are, who works on them and
how they end is written in the database, so a message that is lost or comes twice does no harm.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from celery import Celery, signals
from structlog.typing import FilteringBoundLogger

from service.data.config import Settings
from service.data.parent_death import die_with_parent
from service.data.task_queue import JOBS
from worker import logs
from worker.guarded import Guarded
from worker.tasks import WorkerResources, register_tasks

LONGEST_JOB_SECONDS = 7 * 24 * 3600
"""Redis hands a message out again after this; the reaper is there much earlier."""
ANSWER_SECONDS = 60
"""How long an answer waits for the one who asked."""


@contextmanager
def open_app(
    settings: Settings, log: FilteringBoundLogger, guard: Guarded | None
) -> Iterator[Celery]:
    """An application with its tasks; connections are opened by the processes that run them.

    At the end those of this process are closed, which has some where the pool has no processes.
    """
    with closing(WorkerResources(settings, log, guard)) as station, _create_app(settings) as app:
        register_tasks(app, station)
        _connect_signals(log)
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
        # A job that kills its worker comes back through the reaper, which counts attempts.
        task_reject_on_worker_lost=False,
        worker_prefetch_multiplier=1,
        result_expires=ANSWER_SECONDS,
        broker_transport_options={"visibility_timeout": LONGEST_JOB_SECONDS},
        broker_connection_retry_on_startup=True,
        # None: a worker waits for its broker as long as it takes.
        broker_connection_max_retries=None,
        # Nobody who can write to the broker may command the workers.
        worker_enable_remote_control=False,
        worker_redirect_stdouts=False,
    )
    return app


def _connect_signals(log: FilteringBoundLogger) -> None:
    main = os.getpid()

    def on_logging(**_: Any) -> None:
        logs.install(log)

    def on_process(**_: Any) -> None:
        # In a pool without processes the tasks run in the main one, which nobody has tied to us.
        if os.getpid() != main:
            die_with_parent(signal.SIGKILL, parent=main)

    def on_ready(**_: Any) -> None:
        log.info("worker_ready")

    signals.setup_logging.connect(on_logging, weak=False)
    signals.worker_process_init.connect(on_process, weak=False)
    signals.worker_ready.connect(on_ready, weak=False)
