"""`python -m worker`: a worker for releases, ingests, questions to released models, or all of them."""

import argparse
import sys
import time

from sqlalchemy.exc import OperationalError
from structlog.typing import FilteringBoundLogger

from service.data.config import Settings, usable_cores
from service.data.crypto import WrongMasterKey
from service.data.db import open_engine
from service.data.logging import build_logger
from service.data.master_key import check_master_key
from service.data.task_queue import QUEUES
from synth.threads import wait_passively
from worker.app import open_app
from worker.guarded import guarded
from worker.warm import import_tasks

RETRY_SECONDS = 1.0
"""Pause before connecting again to a database that does not answer."""


def main() -> None:
    """Work until asked to stop."""
    parser = argparse.ArgumentParser(prog="python -m worker", description=__doc__)
    parser.add_argument("--queue", choices=[*QUEUES, "all"], default="all")
    parser.add_argument("--concurrency", type=int, default=1, help="processes, each with one task")
    parser.add_argument(
        "--pool", choices=["prefork", "solo"], default="prefork", help="solo: one process per GPU"
    )
    given = parser.parse_args()
    queues = QUEUES if given.queue == "all" else (given.queue,)
    settings, log = settings_for(given.concurrency), build_logger()
    try:
        _refuse_wrong_master_key(settings, log)
    except WrongMasterKey as refusal:
        sys.exit(f"{type(refusal).__name__}: {refusal}")
    # First of all torch's: OpenMP reads its variables when it is loaded.
    wait_passively()
    import_tasks(queues)
    # Before the pool's processes are forked: they share the pipe to the guard.
    with guarded(queues, log) as guard, open_app(settings, log, guard, queues) as app:
        app.worker_main(
            [
                "--quiet",
                "worker",
                f"--queues={','.join(queues)}",
                f"--concurrency={given.concurrency}",
                f"--pool={given.pool}",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
            ]
        )


def settings_for(concurrency: int) -> Settings:
    """The settings, with the cores divided among this worker's processes unless they say otherwise."""
    settings = Settings()
    if settings.job_threads is not None:
        return settings
    return settings.model_copy(update={"job_threads": max(1, usable_cores() // concurrency)})


def _refuse_wrong_master_key(settings: Settings, log: FilteringBoundLogger) -> None:
    """Check the master key; wait for a database that does not answer, as for the broker."""
    engine = open_engine(str(settings.database_url))
    try:
        while True:
            try:
                check_master_key(engine, settings.master_key_bytes)
                return
            except OperationalError as error:
                log.warning("check_failed", check="master_key", error_type=type(error).__name__)
                time.sleep(RETRY_SECONDS)
    finally:
        # Close before the fork: processes must not share connections.
        engine.dispose()


if __name__ == "__main__":
    main()
