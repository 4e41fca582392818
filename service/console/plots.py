"""Released answers about single columns, as bars. They show released values only."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast
from uuid import UUID

from scrim.spec.schema import Schema
from service.data import releases
from service.data.artifacts import read_artifact
from service.data.context import Context
from service.data.errors import NotFound
from service.releases.schemas import Basis, ModelAnswer

ANSWERS = "answers.csv"
LARGEST_READ = 2_000_000
"""Maximum bytes read from a file of answers."""
MOST_BARS = 24
"""Largest number of bars of a plot."""


@dataclass(frozen=True)
class Bar:
    """One cell of a column."""

    label: str
    fraction: float
    standard_error: float | None
    width: float
    """In percent of the longest bar."""
    reach: tuple[float, float] | None
    """One standard error below and above the value, on the same scale."""


@dataclass(frozen=True)
class Plot:
    """The distribution of one column."""

    column: str
    bars: list[Bar]
    hidden: int
    """The number of cells that are not shown, for lack of room."""


def read_answers(context: Context, release_id: UUID) -> list[ModelAnswer]:
    """Read the first released answers; empty if the release has no such file."""
    with context.transaction() as work:
        try:
            artifact = releases.artifact(work.session, release_id, ANSWERS)
        except NotFound:
            return []
    end = min(artifact.size, LARGEST_READ)
    text = b"".join(read_artifact(context, artifact, end=end)).decode("utf-8", "replace")
    whole = text if end == artifact.size else text[: text.rfind("\n") + 1]
    return [_answer(row) for row in csv.DictReader(io.StringIO(whole))]


def plots_of(answers: Iterable[ModelAnswer], schema: Schema) -> list[Plot]:
    """Build a plot of each column that the answers cover, in the schema's order.

    A column that occurs only together with others is summed over the others.
    """
    found: dict[str, tuple[int, list[tuple[str, float, float | None]]]] = {}
    for item, group in groupby(answers, key=lambda answer: answer.item):
        names = next(csv.reader([item]), [])
        for name, cells in _columns_of(names, list(group), schema).items():
            if name not in found or len(names) < found[name][0]:
                found[name] = (len(names), cells)
    return [plot(name, found[name][1]) for name in schema.sizes if name in found]


def plot(column: str, cells: Sequence[tuple[str, float, float | None]]) -> Plot:
    """Bars on one scale."""
    shown = cells[:MOST_BARS]
    longest = max((_end(fraction, error) for _, fraction, error in shown), default=0) or 1.0
    bars = [
        Bar(
            label=label,
            fraction=fraction,
            standard_error=error,
            width=_percent(fraction / longest),
            reach=None
            if error is None
            else (_percent((fraction - error) / longest), _percent((fraction + error) / longest)),
        )
        for label, fraction, error in shown
    ]
    return Plot(column, bars, hidden=len(cells) - len(shown))


def _columns_of(
    names: Sequence[str], answers: Sequence[ModelAnswer], schema: Schema
) -> Mapping[str, list[tuple[str, float, float | None]]]:
    """The cells of each column of a complete marginal; empty for anything else."""
    if not names or any(name not in schema.sizes for name in names):
        return {}
    if len(answers) != math.prod(schema.sizes[name] for name in names):
        return {}
    sums: dict[str, dict[str, float]] = {name: {} for name in names}
    for answer in answers:
        # A label reads `sex=F & age=[20, 30)`.
        parts = answer.query.split(" & ") if len(names) > 1 else [answer.query]
        if len(parts) != len(names):
            return {}
        for name, part in zip(names, parts, strict=True):
            label = part.removeprefix(f"{name}=")
            sums[name][label] = sums[name].get(label, 0.0) + answer.value
    errors = [answer.standard_error if len(names) == 1 else None for answer in answers]
    return {
        name: [
            (label, value, errors[position] if len(names) == 1 else None)
            for position, (label, value) in enumerate(cells.items())
        ]
        for name, cells in sums.items()
        if len(cells) == schema.sizes[name]
    }


def _answer(row: Mapping[str, str]) -> ModelAnswer:
    # Files of earlier versions have no basis, and other names.
    row = {"value": row.get("fraction", ""), "basis": "model", **row}
    return ModelAnswer(
        item=row["item"],
        query=row["query"],
        value=float(row["value"]),
        count=float(row["count"]),
        standard_error=_known(row["standard_error"]),
        count_standard_error=_known(row["count_standard_error"]),
        basis=cast(Basis, row["basis"]),
    )


def _known(error: str) -> float | None:
    return float(error) if error else None


def _end(fraction: float, error: float | None) -> float:
    return max(0.0, fraction + (error or 0.0))


def _percent(share: float) -> float:
    return round(100 * min(1.0, max(0.0, share)), 2)
