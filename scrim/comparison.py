"""The same shares from released answers and from synthetic rows, without true values."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scrim.records import Answer

Cells = Mapping[str, str]
"""Values by column; for numbers, an interval such as `[65, 99]`."""
Match = Callable[[str, str], bool]
"""Whether a found value matches the wanted one."""


@dataclass(frozen=True)
class ComparedShare:
    """The share of rows with a property among some rows."""

    text: str
    among: Cells
    having: Cells

    @property
    def columns(self) -> list[str]:
        """The columns that it uses."""
        return [*self.among, *self.having]

    def of_answers(self, answers: Iterable[Answer]) -> float | None:
        """The share from the answers of one cross table that has these columns."""
        counts = ((_cells(answer.query), answer.value) for answer in answers)
        return self._ratio(counts, str.__eq__)

    def of_rows(self, rows: Iterable[Cells]) -> float | None:
        """The share counted in rows."""
        return self._ratio(((row, 1.0) for row in rows), contains)

    def _ratio(self, weighted: Iterable[tuple[Cells, float]], matches: Match) -> float | None:
        whole = part = 0.0
        for cells, weight in weighted:
            if all(matches(cells[name], wanted) for name, wanted in self.among.items()):
                whole += weight
                if all(matches(cells[name], wanted) for name, wanted in self.having.items()):
                    part += weight
        return part / whole if whole > 0 else None


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_answers(path: Path) -> dict[frozenset[str], list[Answer]]:
    """The answers of a release, by the columns of their cross table."""
    tables: dict[frozenset[str], list[Answer]] = {}
    for line in read_rows(path):
        answer = Answer.model_validate({name: cell or None for name, cell in line.items()})
        tables.setdefault(frozenset(_cells(answer.query)), []).append(answer)
    return tables


def table_with(
    columns: Sequence[str], tables: Mapping[frozenset[str], list[Answer]]
) -> list[Answer]:
    """The smallest released cross table that has these columns."""
    fitting = [names for names in tables if names >= set(columns)]
    return tables[min(fitting, key=len)]


def contains(value: str, wanted: str) -> bool:
    """Whether a value of a row equals the wanted one, or lies in the wanted interval."""
    if not wanted.startswith("["):
        return value == wanted
    low, high = (float(edge) for edge in wanted[1:-1].split(","))
    return low <= float(value) < high or (wanted.endswith("]") and float(value) == high)


def _cells(query: str) -> dict[str, str]:
    """The cell that a query such as `age=[65, 99] & sex=female` counts."""
    parts = (part.partition("=") for part in query.split(" & "))
    return {name: value for name, _, value in parts}
