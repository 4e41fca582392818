"""Output for people: results on standard output, progress bars and notes on standard error."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table

from scrim.errors import Problem, ScrimError
from scrim.records import Progress

Report = Callable[[Progress], None]
Follow = bool | Report
"""Whether to show a progress bar, or a function that receives progress instead."""

# Only one bar at a time: bars of concurrent calls would garble the screen.
_SCREEN = Lock()

WIDTH_OF_A_PIPE = 200
"""A pipe has no width; the usual 80 characters would truncate ids."""

HINTS = {
    "unauthorized": "Set SCRIM_KEY to a key that is neither expired nor revoked.",
    "scope-missing": "An admin creates keys with `scrim key create NAME --scope SCOPE`.",
}


def output() -> Console:
    """The console for results."""
    return Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_PIPE, highlight=False)


def notes() -> Console:
    """The console for everything that is not a result."""
    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """Print a line that is not a result."""
    notes().print(escape(text), soft_wrap=True)


def show_error(error: ScrimError) -> None:
    """Print an error with its details and a hint."""
    console = notes()
    console.print(f"[bold red]Error:[/] {escape(str(error))}", soft_wrap=True)
    if isinstance(error, Problem):
        if hint := HINTS.get(error.kind):
            console.print(f"  {escape(hint)}", soft_wrap=True)
        about = f"{error.status} {error.title}, request {error.request_id or 'unknown'}"
        console.print(f"  [dim]{escape(about)}[/]", soft_wrap=True)


def show_json(content: BaseModel | Iterable[BaseModel] | dict[str, Any]) -> None:
    """Print JSON for other programs."""
    plain: Any
    if isinstance(content, BaseModel):
        plain = content.model_dump(mode="json", by_alias=True)
    elif isinstance(content, dict):
        plain = content
    else:
        plain = [each.model_dump(mode="json", by_alias=True) for each in content]
    sys.stdout.write(json.dumps(plain, indent=2, ensure_ascii=False) + "\n")


def show_table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a plain table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, no_wrap=heading == "id", overflow="fold")
    for row in rows:
        table.add_row(*(escape(_text(cell)) for cell in row))
    output().print(table)


def show_record(record: BaseModel, *, as_json: bool) -> None:
    """Print one record, field by field."""
    if as_json:
        show_json(record)
        return
    fields = record.model_dump(mode="json", by_alias=True)
    show_table(["field", "value"], ((name, _compact(value)) for name, value in fields.items()))


def _compact(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


@contextmanager
def following(progress: Follow, label: str, *, in_bytes: bool = False) -> Iterator[Report]:
    """Report progress to the caller's function, to a bar, or nowhere."""
    if callable(progress):
        yield progress
    elif progress and can_show_bars() and _SCREEN.acquire(blocking=False):
        try:
            with _bar(label, in_bytes=in_bytes) as move:
                yield move
        finally:
            _SCREEN.release()
    else:
        yield lambda progress: None


def can_show_bars() -> bool:
    """Whether the output is a terminal, or a notebook that can draw bars."""
    console = notes()
    # Without widgets, rich cannot draw and would warn.
    return console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)


@contextmanager
def _bar(label: str, *, in_bytes: bool) -> Iterator[Report]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn() if in_bytes else MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=notes(), transient=True) as bar:
        task = bar.add_task(escape(label), total=None)

        def move(progress: Progress) -> None:
            bar.update(task, completed=progress.done, total=progress.total or None)

        yield move
