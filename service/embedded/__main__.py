"""`python -m service.embedded up`: the whole service on this machine, until Ctrl-C.

`run` starts only the two servers and runs one command beside them, such as a command of
`python -m service` that needs all other processes stopped.
"""

import argparse
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from service.data.crypto import CryptoError
from service.data.ledger.errors import LedgerError
from service.embedded.errors import EmbeddedError
from service.embedded.stack import RunningStack, Stack
from service.embedded.supervisor import Supervisor


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 on success, the command's own code if it failed, 1 if the start failed."""
    given = _parser().parse_args(arguments)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    try:
        if given.command == "run":
            return _run_beside_servers(given.data_dir, given.argv)
        _run(given.data_dir, given.port, until_input_ends=given.until_input_ends)
    except (
        EmbeddedError,
        LedgerError,
        CryptoError,
        SQLAlchemyError,
        ValidationError,
        OSError,
    ) as error:
        print(f"Scrim did not start: {error}", file=sys.stderr)
        return 1
    return 0


def _run(data_dir: Path, port: int, *, until_input_ends: bool) -> None:
    with Supervisor(data_dir) as supervisor:
        if until_input_ends:
            threading.Thread(target=_stop_with_input, args=[supervisor], daemon=True).start()
        print(f"Starting Scrim in {data_dir} ...", flush=True)
        running = Stack(data_dir, port, os.environ).start(supervisor)
        _announce(running)
        supervisor.run()
        print("Stopping ...", flush=True)
        running.ask_to_stop()


def _run_beside_servers(data_dir: Path, argv: Sequence[str]) -> int:
    with Supervisor(data_dir) as supervisor:
        environment = Stack(data_dir, 0, os.environ).start_servers(supervisor)
        done = subprocess.run(argv, env=environment)
    return done.returncode


def _announce(running: RunningStack) -> None:
    print(f"Scrim is ready at {running.url}, its documentation at {running.url}/docs")
    print(f"The web console is at {running.url}/console")
    if running.admin_key is None:
        print("There is an admin key already; the first one was written to", end=" ")
    else:
        print(f"First admin key, shown this once: {running.admin_key}")
        print("It is kept in", end=" ")
    print(f"{running.admin_key_path}\nPress Ctrl-C to stop.", flush=True)


def _stop_with_input(supervisor: Supervisor) -> None:
    """Stop when the parent process closes our standard input, which also happens when it dies."""
    # Not through sys.stdin: a waiting thread would hold its lock when the interpreter exits.
    while os.read(0, 1024):
        pass
    supervisor.request_stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m service.embedded", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    up = commands.add_parser("up", help="start everything")
    up.add_argument("--data-dir", type=Path, default=Path("scrim-data"))
    up.add_argument("--port", type=int, default=8000)
    up.add_argument(
        "--until-input-ends", action="store_true", help="stop when the standard input ends"
    )
    run = commands.add_parser("run", help="start only the servers, and run one command beside them")
    run.add_argument("--data-dir", type=Path, default=Path("scrim-data"))
    run.add_argument("argv", nargs="+", help="the command and its arguments, after `--`")
    return parser


if __name__ == "__main__":
    sys.exit(main())
