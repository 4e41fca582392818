"""`python -m worker`: a worker for jobs, for questions to released models, or for both."""

import argparse

from service.config import Settings
from service.doorbell import FAST, JOBS
from service.logging import build_logger
from worker.app import create_app
from worker.guarded import guarded


def main() -> None:
    """Work until asked to stop."""
    parser = argparse.ArgumentParser(prog="python -m worker", description=__doc__)
    parser.add_argument("--queue", choices=[JOBS, FAST, "all"], default="all")
    parser.add_argument("--concurrency", type=int, default=1, help="processes, each with one task")
    parser.add_argument(
        "--pool", choices=["prefork", "solo"], default="prefork", help="solo: one process per GPU"
    )
    given = parser.parse_args()
    queues = f"{JOBS},{FAST}" if given.queue == "all" else given.queue
    log = build_logger()
    # Before the pool's processes are forked: they share the way to the guard.
    with guarded(log) as guard:
        create_app(Settings(), log, guard).worker_main(
            [
                "--quiet",
                "worker",
                f"--queues={queues}",
                f"--concurrency={given.concurrency}",
                f"--pool={given.pool}",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
            ]
        )


if __name__ == "__main__":
    main()
