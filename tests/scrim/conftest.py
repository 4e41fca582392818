"""Fixtures of the client's tests."""

import pytest

from tests.scrim.support import Script


@pytest.fixture(params=["blocking", "asynchronous"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test run with `Client`, then with `AsyncClient`."""
    monkeypatch.setattr(Script, "is_asynchronous", request.param == "asynchronous")
