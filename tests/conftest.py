"""Configuration of all tests."""

import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.fresh_noise import FreshNoise

# Tests run in several processes at once: more threads than cores would only compete.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Some machines keep no bytecode. Tests start many processes, and each would compile every module again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that runs the tests in the background makes them, and their children, ignore Ctrl-C;
# `nohup` does the same with hangups.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# `make test` tries the same examples in every run; `make test-random` searches for others. No example
# has a time limit, because a busy machine is slow.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", UNTIMED, derandomize=True)
settings.register_profile("searching", UNTIMED, print_blob=True)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Watch for privacy noise in tests that do not declare it."""
    config.pluginmanager.register(FreshNoise())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of whole stacks first.

    An idle process of `pytest -n` takes over the last tests of another. If those share a stack, each
    process starts one.
    """
    items.sort(key=lambda item: item.get_closest_marker("e2e") is None)
