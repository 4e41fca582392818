"""`python -m worker`: a worker for releases, ingests, questions to released models, or all of them."""

import argparse

from service.config import Settings
from service.doorbell import QUEUES
from service.logging import build_logger
from worker.app import create_app


def main() -> None:
    """Work until asked to stop."""
    parser = argparse.ArgumentParser(prog="python -m worker", description=__doc__)
    parser.add_argument("--queue", choices=[*QUEUES, "all"], default="all")
    parser.add_argument("--concurrency", type=int, default=1, help="processes, each with one task")
    parser.add_argument(
        "--pool", choices=["prefork", "solo"], default="prefork", help="solo: one process per GPU"
    )
    given = parser.parse_args()
    queues = ",".join(QUEUES) if given.queue == "all" else given.queue
    app = create_app(Settings(), build_logger())
    app.worker_main(
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
