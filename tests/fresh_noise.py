"""Guard: a test that draws fresh privacy noise must carry the marker `random` or `statistical`.

Privacy noise has no seed, so the outcome of such a test may differ in every run. The marker lets
`make test-random` find it. The guard sees every draw of OpenDP in the process of the tests. A draw in
another process is announced by the code that starts the process (`announce_noise`). Noise that is drawn in a
fixture counts for every test that uses the fixture.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opendp.mod import Measurement

MARKERS = ("random", "statistical")

_drawn = 0


def announce_noise() -> None:
    """Count a draw: called before each one, and where a process is started that draws by itself."""
    global _drawn
    _drawn += 1


class FreshNoise:
    """The guard, as a plugin of pytest."""

    def __init__(self) -> None:
        self._noisy_fixtures: set[Any] = set()
        self._patch = pytest.MonkeyPatch()

    def pytest_sessionstart(self) -> None:
        """Count the draws of OpenDP from here on."""
        invoke: Callable[[Measurement, Any], Any] = Measurement.__call__

        def counted(measurement: Measurement, values: Any) -> Any:
            announce_noise()
            return invoke(measurement, values)

        self._patch.setattr(Measurement, "__call__", counted)

    def pytest_unconfigure(self) -> None:
        """Stop counting."""
        self._patch.undo()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Remember fixtures that draw noise, or that use one that does."""
        before = _drawn
        try:
            return (yield)
        finally:
            if _drawn > before:
                self._noisy_fixtures.add(fixturedef)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Fail a test that draws noise without the marker."""
        before = _drawn
        result = yield
        if any(item.get_closest_marker(name) for name in MARKERS):
            return result
        used = getattr(item, "_fixtureinfo", None)
        defined = used.name2fixturedefs.values() if used else ()
        fixtures = {each for definitions in defined for each in definitions}
        if _drawn > before or fixtures & self._noisy_fixtures:
            pytest.fail(
                "This test draws privacy noise, which has no seed. Mark it `random` and write down"
                " how likely it fails by chance (CONTRIBUTING.md, section Chance).",
                pytrace=False,
            )
        return result
