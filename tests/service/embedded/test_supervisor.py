"""The supervisor: order, signals, restarts and the lock."""

import logging
import os
import signal
from pathlib import Path

import pytest

from service.embedded import Command, FolderInUseError, Supervisor, ValkeyServer, wait_until
from service.embedded.supervisor import Backoff, Supervised
from tests.patience import PATIENCE

from .support import SLEEPER, kill_from_outside


class Recorder:
    """A supervised subject that only records calls."""

    def __init__(self, name: str, events: list[str]) -> None:
        """Note events in this list."""
        self.name = name
        self._events = events

    def start(self) -> None:
        """Note the start."""
        self._events.append(f"start {self.name}")

    def stop(self) -> None:
        """Note the stop, and fail if called so."""
        self._events.append(f"stop {self.name}")
        if self.name == "stubborn":
            raise RuntimeError("will not stop")

    def is_running(self) -> bool:
        """Always."""
        return True


class TestSupervisor:
    """Order, signals, restarts and the lock."""

    def test_stops_in_reverse_order(self, data_dir: Path) -> None:
        events: list[str] = []
        with Supervisor(data_dir) as supervisor:
            for name in ("first", "second"):
                supervisor.start(Recorder(name, events))
        assert events == ["start first", "start second", "stop second", "stop first"]

    def test_stops_the_others_when_one_fails_to(
        self, data_dir: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        events: list[str] = []
        with Supervisor(data_dir) as supervisor:
            for name in ("first", "stubborn"):
                supervisor.start(Recorder(name, events))
        assert events[-1] == "stop first"
        assert "stubborn did not stop cleanly" in caplog.text

    def test_a_signal_before_everything_runs_stops_the_rest(self, data_dir: Path) -> None:
        events: list[str] = []
        with Supervisor(data_dir) as supervisor:
            supervisor.start(Recorder("first", events))
            os.kill(os.getpid(), signal.SIGTERM)
            supervisor.start(Recorder("second", events))
        assert events == ["start first", "stop first"]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_ends_on_a_signal_and_gives_it_back(
        self, data_dir: Path, number: signal.Signals
    ) -> None:
        before = signal.getsignal(number)
        with Supervisor(data_dir) as supervisor:
            os.kill(os.getpid(), number)
            supervisor.run()
        assert signal.getsignal(number) == before

    def test_respects_nohup(self, data_dir: Path) -> None:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with Supervisor(data_dir):
                assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_restarts_what_was_killed(
        self, data_dir: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        sleeper = Command(data_dir, "sleeper", argv=SLEEPER)
        valkey = ValkeyServer(data_dir)
        with Supervisor(data_dir, backoff=Backoff(first=0.01)) as supervisor:
            for subject in (sleeper, valkey):
                supervisor.start(subject)
            before, url = (sleeper.pid, valkey.pid), valkey.url
            for pid in before:
                kill_from_outside(pid)
            look_until_running(supervisor, sleeper, valkey)
            assert set(before).isdisjoint((sleeper.pid, valkey.pid))
            assert valkey.url == url
        assert "valkey runs again" in caplog.text
        assert not sleeper.is_running()
        assert not valkey.is_running()

    def test_keeps_trying_what_does_not_start(
        self, data_dir: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        program = data_dir / "program"
        program.write_text("#!/bin/sh\nexec sleep 1000\n")
        program.chmod(0o755)
        ready = data_dir / "ready"
        ready.touch()
        flaky = Command(data_dir, "flaky", argv=[str(program)], is_ready=ready.exists)
        with Supervisor(data_dir, backoff=Backoff(first=0.01, longest=0.01)) as supervisor:
            supervisor.start(flaky)
            ready.unlink()
            program.write_text("#!/bin/sh\necho broken\nexit 3\n")
            kill_from_outside(flaky.pid)
            wait_until(
                lambda: look(supervisor) and caplog.text.count("did not start") >= 2,
                timeout=PATIENCE,
                what="two failed restarts",
            )
            assert "ended with code 3" in caplog.text
            program.write_text("#!/bin/sh\nexec sleep 1000\n")
            ready.touch()
            look_until_running(supervisor, flaky)

    def test_waits_longer_after_each_failure_up_to_a_bound(self) -> None:
        backoff = Backoff(first=1, longest=5)
        assert [backoff.delay(failures) for failures in (1, 2, 3, 4, 10_000)] == [1, 2, 4, 5, 5]

    def test_locks_the_folder_until_the_end(self, data_dir: Path) -> None:
        with Supervisor(data_dir), pytest.raises(FolderInUseError, match=str(data_dir)):
            Supervisor(data_dir).__enter__()
        with Supervisor(data_dir):
            pass


def look(supervisor: Supervisor) -> bool:
    """Let the supervisor check everything once."""
    supervisor.restart_dead()
    return True


def look_until_running(supervisor: Supervisor, *subjects: Supervised) -> None:
    """Let the supervisor work until all of these run."""
    wait_until(
        lambda: look(supervisor) and all(subject.is_running() for subject in subjects),
        timeout=PATIENCE,
        what="restart",
    )
