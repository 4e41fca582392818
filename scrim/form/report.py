"""What was found when a file was compared with a declaration."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from scrim.form.cells import Verdict
from scrim.spec.columns import IdentifierColumn, LabelledColumn, OrdinalColumn
from scrim.spec.schema import Column

MOST_EXAMPLES = 3
LONGEST_EXAMPLE = 40
_FINDINGS: dict[Verdict, str] = {
    "undeclared": "hold no declared value",
    "unreadable": "cannot be read as the declared type",
    "below": 'are below "lower" and become it',
    "above": 'are above "upper" and become it',
    "rounded": "are rounded to whole numbers",
}


@dataclass
class ColumnFindings:
    """The cells of one column, counted by what becomes of them."""

    column: Column
    counts: Counter[Verdict] = field(default_factory=Counter)
    examples: dict[Verdict, list[str]] = field(default_factory=dict)
    """A few different cells of each kind that does not fit."""

    def add(self, verdict: Verdict, cell: str | None) -> None:
        """Count a cell."""
        self.counts[verdict] += 1
        if verdict in _FINDINGS:
            shown = self.examples.setdefault(verdict, [])
            text = (cell or "")[:LONGEST_EXAMPLE]
            if len(shown) < MOST_EXAMPLES and text not in shown:
                shown.append(text)

    @property
    def outside(self) -> int:
        """The number of cells that the service would change."""
        return sum(self.counts[verdict] for verdict in _FINDINGS)

    def sentences(self) -> Iterator[str]:
        """Each kind of cell that does not fit, with what becomes of it."""
        for verdict, text in _FINDINGS.items():
            if count := self.counts[verdict]:
                cells = "1 cell" if count == 1 else f"{count:,} cells"
                shown = ", ".join(repr(each) for each in self.examples[verdict])
                yield f"{self.column.name}: {cells} {text}{self._mapped(verdict)} (such as {shown})"
        if isinstance(self.column, IdentifierColumn) and self.counts["missing"]:
            yield (
                f"{self.column.name}: {self.counts['missing']:,} cells are empty; the table would be "
                "rejected for a population of persons"
            )

    def _mapped(self, verdict: Verdict) -> str:
        if verdict not in ("undeclared", "unreadable") or isinstance(self.column, IdentifierColumn):
            return ""
        other = getattr(self.column, "other", None)
        if isinstance(self.column, LabelledColumn | OrdinalColumn) and other is not None:
            return f" and become {other!r}"
        return " and become missing" if self.column.nullable else " and become a fixed value"


@dataclass
class TableFindings:
    """One table of a file."""

    name: str
    """`rows`, `groups` or `individuals`."""
    rows: int = 0
    columns: list[ColumnFindings] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Columns of the file that are not declared."""
    remarks: list[str] = field(default_factory=list)
    """What the service would change about groups."""
    faults: list[str] = field(default_factory=list)
    """Why the service would reject the file."""


@dataclass
class FormReport:
    """A file, or the two files of groups and individuals, compared with a declaration."""

    tables: list[TableFindings]

    @property
    def fits(self) -> bool:
        """Whether the service would accept the file. Cells outside the declaration are no reason not to."""
        return not any(table.faults for table in self.tables)

    @property
    def outside(self) -> int:
        """The number of cells that the service would change."""
        return sum(column.outside for table in self.tables for column in table.columns)
