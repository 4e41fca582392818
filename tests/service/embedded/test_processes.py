"""Programs that run beside the servers, and helpers to start them."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from service.embedded import Command, EmbeddedError, StartFailedError, wait_until
from service.embedded.process import SERVER_PORTS, Child, find_free_port
from tests.patience import PATIENCE

from .support import SLEEPER, needs_linux, wait_until_gone


class TestCommand:
    """Programs that run beside the servers."""

    def test_writes_its_output_to_a_log(self, data_dir: Path) -> None:
        command = Command(data_dir, "talker", argv=["sh", "-c", "echo out; echo err >&2"])
        command.start()
        log = data_dir / "logs" / "talker.log"
        wait_until(lambda: log.read_text() == "out\nerr\n", timeout=PATIENCE, what="output")
        command.stop()

    def test_sets_a_long_log_aside(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.embedded.process.LONGEST_LOG_BYTES", 3)
        logs = data_dir / "logs"
        logs.mkdir()
        (logs / "sleeper.log").write_text("long")
        command = Command(data_dir, "sleeper", argv=SLEEPER)
        command.start()
        command.stop()
        assert (logs / "sleeper.log.1").read_text() == "long"
        assert (logs / "sleeper.log").read_text() == ""

    def test_gets_the_environment_it_is_given(self, data_dir: Path) -> None:
        argv = ["/bin/sh", "-c", "echo $GIVEN; test -z $HOME && echo nothing else"]
        command = Command(data_dir, "talker", argv=argv, env={"GIVEN": "this"})
        command.start()
        log = data_dir / "logs" / "talker.log"
        wait_until(
            lambda: log.read_text() == "this\nnothing else\n", timeout=PATIENCE, what="output"
        )
        command.stop()

    def test_is_ended_with_its_own_children_when_it_will_not_stop(self, data_dir: Path) -> None:
        script = "trap '' TERM; sleep 1000 & echo $!; while :; do wait; done"
        command = Command(data_dir, "stubborn", argv=["sh", "-c", script], grace=0.1)
        command.start()
        log = data_dir / "logs" / "stubborn.log"
        wait_until(lambda: log.read_text().endswith("\n"), timeout=PATIENCE, what="the child's pid")
        command.stop()
        wait_until_gone([command.pid, int(log.read_text())])

    def test_tells_what_went_wrong(self, data_dir: Path) -> None:
        argv = ["sh", "-c", "echo no luck; exit 3"]
        command = Command(data_dir, "broken", argv=argv, is_ready=lambda: False)
        with pytest.raises(StartFailedError, match=r"code 3 .*\n?.*no luck"):
            command.start()

    def test_tells_when_it_stays_silent(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("service.embedded.supervisor.READY_SECONDS", 0.1)
        command = Command(data_dir, "silent", argv=SLEEPER, is_ready=lambda: False)
        with pytest.raises(StartFailedError, match=r"silent was not ready within 0\.1 seconds"):
            command.start()
        assert not command.is_running()

    @needs_linux
    def test_tells_when_there_is_no_such_program(self, data_dir: Path) -> None:
        argv = ["/no/such/program"]
        command = Command(data_dir, "missing", argv=argv, is_ready=lambda: False)
        with pytest.raises(StartFailedError, match="cannot run /no/such/program: No such file"):
            command.start()

    @needs_linux
    def test_ignores_no_signals(self, data_dir: Path) -> None:
        command = Command(data_dir, "sleeper", argv=SLEEPER)
        command.start()
        wait_until(lambda: ignored_signals(command.pid) == set(), timeout=PATIENCE, what="exec")
        command.stop()


def ignored_signals(pid: int) -> set[int]:
    """Signals that a process ignores, except 32 and 33, which the C library uses and make sets."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(
        next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16
    )
    return {bit + 1 for bit in range(64) if mask >> bit & 1} - {32, 33}


class TestProcess:
    """Helpers to start programs."""

    def test_refuses_to_start_from_another_thread(self, data_dir: Path) -> None:
        caught: list[BaseException] = []

        def start() -> None:
            try:
                Child("sleeper", SLEEPER, log_path=data_dir / "log")
            except EmbeddedError as error:
                caught.append(error)

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        assert "main thread" in str(caught)

    def test_free_ports_are_none_of_those_for_outgoing_connections(self) -> None:
        assert find_free_port() in SERVER_PORTS
        outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range")
        if outgoing.exists():
            assert SERVER_PORTS.stop <= int(outgoing.read_text().split()[0])

    def test_waiting_names_what_never_came(self) -> None:
        with pytest.raises(TimeoutError, match=r"the moon: not within 0\.05 seconds"):
            wait_until(lambda: False, timeout=0.05, what="the moon")

    @pytest.mark.parametrize("ending", ["sys.exit(0)", "raise RuntimeError", "os.fork() or 1 / 0"])
    def test_nothing_outlives_a_process_that_forgot_to_stop_it(
        self, data_dir: Path, ending: str
    ) -> None:
        script = (
            "import os, sys; from pathlib import Path; from service.embedded import ValkeyServer\n"
            "server = ValkeyServer(Path(sys.argv[1])); server.start()\n"
            f"print(server.pid, flush=True)\n{ending}"
        )
        ended = subprocess.run(
            [sys.executable, "-c", script, str(data_dir)], capture_output=True, text=True
        )
        wait_until_gone([int(ended.stdout)])
        assert "ready to exit" in (data_dir / "logs" / "valkey.log").read_text()
