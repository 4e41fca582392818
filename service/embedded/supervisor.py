"""Keeps servers and commands running until we are asked to stop."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Protocol, Self

from service.embedded.errors import EmbeddedError, StopRequestedError
from service.embedded.folder import locked
from service.embedded.process import Child, at_exit

logger = logging.getLogger(__name__)

WATCH_SECONDS = 0.1
"""Interval between two looks at all subjects."""
READY_SECONDS = 60
"""Longest wait for a program that starts."""


class Supervised(Protocol):
    """The protocol of what a supervisor keeps running: the embedded servers and `Command`."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    def start(self) -> None:
        """Start it, and return once it is ready."""
        ...

    def stop(self) -> None:
        """Stop it, if it runs."""
        ...

    def is_running(self) -> bool:
        """Whether it runs."""
        ...


class Command:
    """A program run as ourselves, with its output in `data_dir/logs/<name>.log`."""

    def __init__(
        self,
        data_dir: Path,
        name: str,
        *,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        is_ready: Callable[[], bool] = lambda: True,
        stop_signal: signal.Signals = signal.SIGTERM,
        death_signal: signal.Signals = signal.SIGKILL,
        grace: float = 10,
    ) -> None:
        """Describe a program; `env` is its whole environment, by default ours.

        It gets `stop_signal` and `grace` seconds to end, and `death_signal` if this process dies.
        Programs that it starts should call `die_with_parent` themselves.
        """
        self.name = name
        self._log_path = data_dir.absolute() / "logs" / f"{name}.log"
        self._argv = argv
        self._env = env
        self._is_ready = is_ready
        self._stop_signal = stop_signal
        self._death_signal = death_signal
        self._grace = grace
        self._child: Child | None = None
        self._held = ExitStack()

    def start(self) -> None:
        """Start the program and return once it is ready."""
        if self.is_running():
            raise EmbeddedError(f"{self.name} runs already")
        self._held.close()
        with ExitStack() as held:
            child = Child(
                self.name,
                self._argv,
                log_path=self._log_path,
                env=self._env,
                death_signal=self._death_signal,
            )
            held.callback(child.stop, self._stop_signal, grace=self._grace)
            held.callback(at_exit(self.stop))
            child.wait_until_ready(self._is_ready, timeout=READY_SECONDS)
            self._child = child
            self._held = held.pop_all()

    def stop(self) -> None:
        """Stop the program, if it runs."""
        self._held.close()

    def is_running(self) -> bool:
        """Whether the program runs."""
        return self._child is not None and self._child.is_running()

    @property
    def pid(self) -> int:
        """Process id of the program."""
        if self._child is None:
            raise EmbeddedError(f"{self.name} was not started")
        return self._child.pid


@dataclass(frozen=True)
class Backoff:
    """The delay before the next restart: doubled after each failure, up to a limit."""

    first: float = 0.1
    longest: float = 30
    forgiven_after: float = 60
    """Seconds of running after which earlier failures no longer count."""

    def delay(self, failures: int) -> float:
        """Seconds to wait after this many failures in a row."""
        # Bounded exponent: a program that fails for days must not overflow a float.
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 30))


class Watch:
    """One supervised subject, and the time of its next restart."""

    def __init__(self, subject: Supervised, backoff: Backoff) -> None:
        """Watch something that was just started."""
        self.subject = subject
        self._backoff = backoff
        self._failures = 0
        self._started_at = time.monotonic()
        self._restart_at: float | None = None

    def restart_if_dead(self) -> None:
        """Schedule a restart once the subject is dead; restart it when that time has come."""
        if self.subject.is_running():
            return
        if self._restart_at is None:
            self._plan_restart()
        elif time.monotonic() >= self._restart_at:
            self._restart()

    def _plan_restart(self) -> None:
        now = time.monotonic()
        if now - self._started_at > self._backoff.forgiven_after:
            self._failures = 0
        self._failures += 1
        delay = self._backoff.delay(self._failures)
        self._restart_at = now + delay
        logger.warning("%s is not running; restart in %.1f s", self.subject.name, delay)

    def _restart(self) -> None:
        self._restart_at = None
        try:
            self.subject.start()
            logger.warning("%s runs again", self.subject.name)
        except (EmbeddedError, OSError) as error:
            logger.error("%s did not start: %s", self.subject.name, error)
        # Set after the attempt, however long it took: only time spent running clears earlier failures.
        self._started_at = time.monotonic()


class Supervisor:
    """Owns a data folder and what runs in it, from `with` until a signal or the end of the block.

    Use it in the main thread:

        with Supervisor(data_dir) as supervisor:
            supervisor.start(postgres)
            supervisor.start(Command(data_dir, "worker", argv=[...]))
            supervisor.run()

    A signal during the block makes the next `start` raise StopRequestedError, which the block
    swallows; everything started is stopped in reverse order in any case.
    """

    def __init__(self, data_dir: Path, *, backoff: Backoff | None = None) -> None:
        """Describe a supervisor of this folder."""
        self._data_dir = data_dir.absolute()
        self._backoff = backoff or Backoff()
        self._stop_requested = threading.Event()
        self._watches: list[Watch] = []
        self._held = ExitStack()

    def __enter__(self) -> Self:
        """Lock the folder and handle the signals that ask to stop."""
        self._stop_requested.clear()
        with ExitStack() as held:
            held.enter_context(locked(self._data_dir))
            for number in _signals_to_handle():
                held.callback(signal.signal, number, signal.signal(number, self._on_signal))
            self._held = held.pop_all()
        return self

    def start(self, subject: Supervised) -> None:
        """Start something and keep it running from now on."""
        if self._stop_requested.is_set():
            raise StopRequestedError(f"asked to stop before {subject.name} was started")
        subject.start()
        self._watches.append(Watch(subject, self._backoff))

    def run(self) -> None:
        """Restart what dies, until a signal or `request_stop`."""
        while not self._stop_requested.wait(WATCH_SECONDS):
            self.restart_dead()

    def restart_dead(self) -> None:
        """Check each subject once, and restart it if it is dead."""
        for watch in self._watches:
            watch.restart_if_dead()

    def request_stop(self) -> None:
        """Make `run` return; may be called from any thread."""
        self._stop_requested.set()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Stop everything in reverse order and release the folder."""
        with self._held:
            while self._watches:
                self._stop_one(self._watches.pop().subject)
        return isinstance(error, StopRequestedError)

    def _stop_one(self, subject: Supervised) -> None:
        try:
            subject.stop()
        except Exception:
            # The others must be stopped all the same.
            logger.exception("%s did not stop cleanly", subject.name)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.request_stop()


def _signals_to_handle() -> list[signal.Signals]:
    """The signals that ask to stop; includes SIGHUP unless `nohup` ignores it."""
    ignores_hangup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM] + ([] if ignores_hangup else [signal.SIGHUP])
