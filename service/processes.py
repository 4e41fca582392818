"""Several service processes on one port: started together, restarted when they die, stopped together."""

import gc
import multiprocessing
import os
import resource
import signal
import socket
import sys
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType

from uvicorn.config import STARTUP_FAILURE

from service.app import create_app
from service.data.config import Settings
from service.data.parent_death import die_with_parent
from service.server import LimitedServer

# Files that a process opens beside its connections: the database, the log, libraries.
_OTHER_FILES = 256
_LOOK_SECONDS = 1.0
"""Interval between two looks for a request to stop."""
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(settings: Settings, *, host: str, port: int) -> int:
    """Answer requests until asked to stop, in as many processes as the settings say."""
    _allow_files(settings.max_connections + _OTHER_FILES)
    _collect_seldom()
    if settings.processes == 1:
        LimitedServer(create_app(settings), settings, host=host, port=port).run()
        return 0
    _require_free(host, port)
    return _Group(settings, host, port).run()


class _Group:
    """The parent of the service processes, which answers no requests itself."""

    def __init__(self, settings: Settings, host: str, port: int) -> None:
        self._number = settings.processes
        self._arguments = (settings, host, port, os.getpid())
        self._is_stopping = False

    def run(self) -> int:
        """Keep all processes running until a signal asks to stop; returns the exit code."""
        for number in _STOP_SIGNALS:
            signal.signal(number, self._stop)
        children = [self._start() for _ in range(self._number)]
        code = 0
        while not self._is_stopping:
            wait([child.sentinel for child in children], timeout=_LOOK_SECONDS)
            if any(child.exitcode == STARTUP_FAILURE for child in children):
                # A replacement would fail as well: the database is refused, or the port is taken.
                code, self._is_stopping = STARTUP_FAILURE, True
            elif not self._is_stopping:
                children = [each if each.is_alive() else self._start() for each in children]
        for child in children:
            child.terminate()
        for child in children:
            child.join()
        return code

    def _start(self) -> BaseProcess:
        child = multiprocessing.Process(target=_serve_beside, args=self._arguments)
        child.start()
        return child

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        self._is_stopping = True


def _serve_beside(settings: Settings, host: str, port: int, parent: int) -> None:
    """Run one of several processes with its own socket; the kernel distributes the connections."""
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(signal.SIGTERM, parent=parent)
    with _listening(host, port, is_shared=True) as listener:
        LimitedServer(create_app(settings), settings).run(sockets=[listener])


def _require_free(host: str, port: int) -> None:
    """Refuse a port that another service uses: shared sockets would not detect it."""
    _listening(host, port, is_shared=False).close()


def _listening(host: str, port: int, *, is_shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, reuse_port=is_shared)
    except OSError as error:
        print(f"{host} port {port} cannot be used: {error.strerror}", file=sys.stderr)
        sys.exit(STARTUP_FAILURE)


def _collect_seldom() -> None:
    """Exclude imported modules from garbage collection, and collect less often.

    A request leaves few cycles behind, and every full collection would visit all modules.
    """
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def _allow_files(number: int) -> None:
    """Raise this process's limit on open files as far as needed and allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        number = min(number, hard)
    if soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
