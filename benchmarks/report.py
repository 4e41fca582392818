"""Timing, and tables in plain text and Markdown."""

import time
from collections.abc import Callable, Sequence


def seconds(action: Callable[[], object], *, repeats: int = 5) -> float:
    """Time of the fastest of several runs, which other load disturbs least."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a title and aligned columns, with numbers aligned right."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *cells]) for i in range(len(header))]
    print(f"\n{title}")
    for line in [list(header), *cells]:
        first = line[0].ljust(widths[0])
        print("  ".join([first, *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]))


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The same columns in Markdown."""
    lines = [
        header,
        ["---", *("---:" for _ in header[1:])],
        *([_text(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
