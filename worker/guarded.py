"""The worker's side of its guard (worker/guard.py): start it, and report jobs to it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from structlog.typing import FilteringBoundLogger

from service.data.task_queue import QUEUE_OF, RUN


@dataclass(frozen=True)
class Guarded:
    """A pipe to the guard. Processes that are forked from the worker share it."""

    pipe: int

    @contextmanager
    def job(self, release_id: UUID) -> Iterator[None]:
        """While the block runs, let the guard end this process if the release must end."""
        self._send(f"start {os.getpid()} {release_id}")
        try:
            yield
        finally:
            self._send(f"end {os.getpid()}")

    def _send(self, line: str) -> None:
        # One write of less than 4 KiB is atomic: lines of several processes never mix.
        os.write(self.pipe, f"{line}\n".encode())


@contextmanager
def guarded(queues: Collection[str], log: FilteringBoundLogger) -> Iterator[Guarded | None]:
    """Start a guard beside a worker of these queues, if it carries out releases; otherwise None.

    If the guard dies, this process stops, so that its supervisor restarts it.
    """
    if QUEUE_OF[RUN] not in queues:
        yield None
        return
    process = subprocess.Popen([sys.executable, "-P", "-m", "worker.guard"], stdin=subprocess.PIPE)
    assert process.stdin is not None
    leaving = threading.Event()

    def stop_with_it() -> None:
        process.wait()
        if not leaving.is_set():
            log.error("guard_lost")
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_with_it, daemon=True).start()
    try:
        yield Guarded(process.stdin.fileno())
    finally:
        leaving.set()
        process.stdin.close()
