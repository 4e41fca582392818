"""The stack is a separate program: started, watched, stopped, and never left running."""

import os
import sys
from pathlib import Path

import pytest

from scrim import StackFailed
from scrim.stack import LocalStack, become_stack, find_free_port, stack_command

SERVE = """
import http.server, os, sys, threading
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Ready)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.read(0, 1)
open(sys.argv[2], "w").write(" ".join(n for n in os.environ if n.startswith("SCRIM_")) + "ended")
"""


def test_the_command_names_folder_and_port(tmp_path: Path) -> None:
    command = stack_command(tmp_path, 8123)
    assert command[0] == sys.executable
    assert command[-5:] == ["up", "--data-dir", str(tmp_path), "--port", "8123"]


def test_without_the_server_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrim.stack.SERVER", "scrim-server-that-is-not-installed")
    with pytest.raises(StackFailed, match="pip install scrim-server"):
        stack_command(Path("data"), 8000)


def test_up_becomes_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, command: became.append(command))
    become_stack(Path("data"), 8000)
    assert became == [stack_command(Path("data"), 8000)]


def test_it_ends_when_its_input_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = tmp_path / "ended"
    monkeypatch.setenv("SCRIM_DATABASE_URL", "postgresql://precious")
    monkeypatch.setattr(
        "scrim.stack.stack_command",
        lambda data_dir, port, *options: [sys.executable, "-c", SERVE, str(port), str(ended)],
    )
    (tmp_path / "admin.key").write_text("scrim_x\n")
    (tmp_path / "signing.pub").write_text("abc\n")
    with LocalStack(tmp_path) as stack:
        assert stack.admin_key() == "scrim_x"
        assert stack.public_key() == "abc"
        assert not ended.exists()
    # It got no external database, and it was not killed.
    assert ended.read_text() == "ended"


def test_a_stack_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "scrim.stack.stack_command",
        lambda *arguments: [sys.executable, "-c", "import sys; sys.exit('no disk')"],
    )
    with pytest.raises(StackFailed, match="no disk"), LocalStack(tmp_path):
        pass


def test_ports_are_free() -> None:
    assert len({find_free_port() for _ in range(5)}) > 1
