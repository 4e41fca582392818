"""A supervising process, and that nothing outlives it."""

import signal
from pathlib import Path

import psycopg
import pytest

from service.embedded import PostgresServer, wait_until
from service.embedded import stack as stack_module
from service.embedded.stack import memory_for_a_job
from tests.patience import PATIENCE

from .support import kill_from_outside, needs_linux, put_row, running_stack, wait_until_gone


class TestWholeStack:
    """A supervising process and its signals."""

    @needs_linux
    def test_children_die_when_the_parent_is_killed(self, used_dir: Path) -> None:
        with running_stack(used_dir) as stack:
            stack.process.kill()
            wait_until_gone(stack.pids)

    @needs_linux
    def test_starts_at_once_after_the_parent_was_killed(self, used_dir: Path) -> None:
        with running_stack(used_dir) as stack:
            stack.process.kill()
            stack.process.wait()
            with PostgresServer(used_dir, durable=False) as server:
                put_row(server)

    def test_stops_cleanly_on_a_signal(self, used_dir: Path) -> None:
        with running_stack(used_dir) as stack:
            stack.process.send_signal(signal.SIGTERM)
            assert stack.process.wait(PATIENCE) == 0
            wait_until_gone(stack.pids)
        last_words = (used_dir / "logs" / "postgres.log").read_text().splitlines()[-1]
        assert "database system is shut down" in last_words

    def test_restarts_what_is_killed_at_the_same_address(self, used_dir: Path) -> None:
        def answers() -> bool:
            try:
                psycopg.connect(stack.dsn, connect_timeout=1).close()
            except psycopg.OperationalError:
                return False
            return True

        with running_stack(used_dir) as stack:
            kill_from_outside(stack.pids[0])
            wait_until(answers, timeout=PATIENCE, what="Postgres again")


class TestMemoryForAJob:
    """What one job of an embedded stack may use."""

    def test_it_leaves_a_quarter_of_the_container(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limit = tmp_path / "memory.max"
        monkeypatch.setattr(stack_module, "CONTAINER_LIMIT", limit)
        whole_machine = memory_for_a_job()
        limit.write_text("max\n")
        assert memory_for_a_job() == whole_machine > 2**20
        limit.write_text("1048576\n")
        assert memory_for_a_job() == 786432
