"""Messages to the workers. They carry ids and public questions, never data.

The database is the source of truth: the reaper sends lost messages again, so a failure to send is
logged and not raised. Questions to a released model are the exception: a caller waits for the
answer, which the worker's task returns and Celery leaves in the broker for a moment.
"""

import asyncio
import json
import time
from typing import Any, Final

import redis
from celery import Celery
from kombu.exceptions import KombuError
from redis.exceptions import RedisError
from starlette.concurrency import run_in_threadpool
from structlog.typing import FilteringBoundLogger

from service.data.errors import ArtifactDamaged, NotReady

JOBS: Final = "jobs"
"""The queue of releases, which may take hours."""
UPLOADS: Final = "ingest"
"""The queue of uploaded tables to ingest, so that uploads and releases do not wait for each other."""
FAST: Final = "fast"
"""The queue of questions to released models; their callers wait for the answers."""
QUEUES: Final = (JOBS, UPLOADS, FAST)

INGEST: Final = "dataset.ingest"
RUN: Final = "release.run"
ANSWER: Final = "model.answer"
SAMPLE: Final = "model.sample"
QUEUE_OF: Final = {RUN: JOBS, INGEST: UPLOADS, ANSWER: FAST, SAMPLE: FAST}

_CONNECT_SECONDS = 2.0
"""Longest wait for a connection to the broker, in seconds."""
_FIRST_LOOK_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 0.2
"""An answer is looked for after the first pause, which doubles up to the longest."""
# Where Celery's Redis backend leaves the answer of a task.
_ANSWERS = "celery-task-meta-"


class TaskQueue:
    """Sends tasks by name, without importing the workers' code."""

    def __init__(self, broker_url: str, broker: "redis.Redis", log: FilteringBoundLogger) -> None:
        self._broker = broker
        self._log = log
        # No result backend here: Celery would subscribe to every answer, which is not safe with
        # several threads. Answers are looked up by their key instead.
        self._celery = Celery("scrim", broker=broker_url, set_as_current=False)
        self._celery.conf.update(
            task_serializer="json",
            accept_content=["json"],
            broker_transport_options={
                "socket_connect_timeout": _CONNECT_SECONDS,
                "socket_timeout": _CONNECT_SECONDS,
            },
        )

    def send(self, task: str, *args: str) -> None:
        """Send a message to the workers."""
        try:
            self._send(task, args)
        except (KombuError, RedisError, OSError) as error:
            self._log.warning(
                "send_failed",
                task=task,
                queue=QUEUE_OF[task],
                error_type=type(error).__name__,
            )

    async def ask(self, task: str, *args: Any, timeout: float) -> Any:
        """Ask a worker and wait for its answer; NotReady if none comes in time."""
        try:
            return await self._ask(task, args, timeout)
        except (KombuError, RedisError, OSError) as error:
            self._log.warning("ask_failed", task=task, error_type=type(error).__name__)
        raise NotReady("the workers cannot be reached; try again later")

    def depth(self, queue: str) -> int:
        """Number of messages that wait in a queue."""
        return int(self._broker.llen(queue))

    def close(self) -> None:
        """Close the connections."""
        self._celery.close()

    async def _ask(self, task: str, args: tuple[Any, ...], timeout: float) -> Any:
        deadline = time.monotonic() + timeout
        task_id = await run_in_threadpool(self._send, task, args, expires=timeout)
        pause = _FIRST_LOOK_SECONDS
        while time.monotonic() < deadline:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            # Deleted at once: only the process that asked reads the answer.
            found = await run_in_threadpool(self._broker.getdel, _ANSWERS + task_id)
            if found is None:
                continue
            answer = json.loads(found)
            if answer["status"] == "SUCCESS":
                return answer["result"]
            if answer["status"] in {"FAILURE", "REVOKED"}:
                if _error_type(answer["result"]) == ArtifactDamaged.__name__:
                    raise ArtifactDamaged("the model")
                raise NotReady("the worker could not answer; its log says why")
        raise NotReady(f"no worker answered within {timeout:g} seconds; try again later")

    def _send(self, task: str, args: tuple[Any, ...], *, expires: float | None = None) -> str:
        # Celery's own connection retries for seconds, which is too long for a caller to wait.
        self._broker.ping()
        sent = self._celery.send_task(
            task, args=args, queue=QUEUE_OF[task], expires=expires, retry=False
        )
        return str(sent.id)


def _error_type(result: object) -> str | None:
    """The class of a worker's error. Its message is not read: it may contain anything."""
    return result.get("exc_type") if isinstance(result, dict) else None
