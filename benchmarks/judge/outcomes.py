"""What one release of a judged table showed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.comparison.outcomes import Outcome, Task, read_fields, read_lines
from benchmarks.judge.measures import Variation


@dataclass(frozen=True)
class Judgement(Outcome):
    """The errors of a release, and what its rows are good for."""

    table_rows: int
    """Rows of the whole table, of which some are kept for testing."""
    chosen: str
    """The mechanism that ran, where `auto` chose it."""
    pairs: Variation
    """Of the rows, over the pairs of columns that are asked about together."""
    rare_error: float | None
    """The median relative error of rare categories; None where the table has none."""
    auc: float
    """Of a classifier that learnt from the released rows, on rows kept for testing."""
    true_auc: float
    """The same, learnt from the true rows."""
    peak_mebibytes: float | None
    commit: str

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """What a line says."""
        return super().of({**fields, "pairs": Variation(**fields["pairs"])})

    @property
    def auc_ratio(self) -> float:
        """The AUC as a part of that of the true rows."""
        return self.auc / self.true_auc

    def __str__(self) -> str:
        rows = self.released_rows
        assert rows is not None
        return (
            f"{self.chosen}, rows: max {rows.max:.3g}, mean {rows.mean:.3g}, "
            f"AUC {self.auc_ratio:.3f} of the true, {self.processor_seconds:.0f} processor s"
        )


Judgements = dict[Task, Judgement]


def newest_code(path: Path) -> str | None:
    """The state of the code that the last line is of; None where there is no line."""
    lines = read_lines(path)
    return lines[-1][1]["code"] if lines else None


def read_judgements(path: Path, *, code: str | None) -> Judgements:
    """What was found with one state of the code."""
    if code is None:
        return {}
    return {task: Judgement.of(fields) for task, fields in read_fields(path, code=code).items()}
