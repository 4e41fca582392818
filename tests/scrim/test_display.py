"""Bars are for people: in terminals and notebooks, and nowhere else."""

import io

import pytest
from rich.console import Console

from scrim.display import can_show_bars, following
from scrim.records import Progress


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal that keeps what is shown."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr("scrim.display.notes", lambda: console)
    return shown


def notebook(monkeypatch: pytest.MonkeyPatch, *, has_widgets: bool) -> None:
    console = Console(file=io.StringIO(), force_jupyter=True)
    monkeypatch.setattr("scrim.display.notes", lambda: console)
    monkeypatch.setattr("scrim.display.find_spec", lambda name: has_widgets or None)


def test_a_terminal_shows_a_bar(terminal: io.StringIO) -> None:
    with following(True, "Fitting [1]") as follow:
        follow(Progress(done=3, total=7))
    assert "Fitting [1]" in terminal.getvalue() and "3/7" in terminal.getvalue()


def test_bytes_are_shown_as_such(terminal: io.StringIO) -> None:
    with following(True, "Uploading", in_bytes=True) as follow:
        follow(Progress(done=1_000_000, total=2_000_000))
    assert "1.0/2.0 MB" in terminal.getvalue()


def test_there_is_one_bar_at_a_time(terminal: io.StringIO) -> None:
    """Concurrent calls share the screen."""
    with following(True, "First") as first, following(True, "Second") as second:
        second(Progress(done=5, total=9))
        first(Progress(done=3, total=7))
    assert "3/7" in terminal.getvalue() and "Second" not in terminal.getvalue()
    with following(True, "Third"):
        pass
    assert "Third" in terminal.getvalue()


def test_it_can_be_turned_off(terminal: io.StringIO) -> None:
    with following(False, "Fitting") as follow:
        follow(Progress(done=3, total=7))
    assert terminal.getvalue() == ""


def test_a_function_receives_progress_instead(terminal: io.StringIO) -> None:
    told: list[Progress] = []
    with following(told.append, "Fitting") as follow:
        follow(Progress(done=3, total=7))
    assert [each.done for each in told] == [3] and terminal.getvalue() == ""


def test_a_pipe_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with following(True, "Fitting") as follow:
        follow(Progress(done=3, total=7))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("has_widgets", [True, False])
def test_a_notebook_needs_widgets(monkeypatch: pytest.MonkeyPatch, has_widgets: bool) -> None:
    notebook(monkeypatch, has_widgets=has_widgets)
    assert can_show_bars() == has_widgets
