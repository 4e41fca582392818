"""The outcome of a job, saved as one line of JSON, so that an interrupted grid can continue."""

import json
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self


@dataclass(frozen=True)
class Task:
    """One release of a grid. Its noise is fresh; the run's number seeds what follows the noise."""

    comparison: str
    mechanism: str
    epsilon: float
    run: int


@dataclass(frozen=True)
class Errors:
    """Absolute errors of all asked queries, as fractions of the rows."""

    max: float
    mean: float
    rms: float | None = None
    """The root of the mean square; None in lines that were written without it."""


@dataclass(frozen=True)
class Outcome:
    """The errors of one release, and how long it took."""

    rows: int
    """Number of private rows; there are as many synthetic ones."""
    queries: int
    answers: Errors
    """Errors of the model's answers."""
    released_rows: Errors | None
    """Errors of the answers that the synthetic rows give; None if there are no rows."""
    seconds: float
    processor_seconds: float
    """Summed over the threads, so that other load has less influence."""
    code: str
    """The fingerprint of the algorithms' code."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Parse the fields of a line."""
        released = fields["released_rows"]
        return cls(
            **{
                **fields,
                "answers": Errors(**fields["answers"]),
                "released_rows": None if released is None else Errors(**released),
            }
        )

    def __str__(self) -> str:
        return f"max {self.answers.max:.3g}, mean {self.answers.mean:.3g}, {self.seconds:.3g} s"


Outcomes = dict[Task, Outcome]


class Found(Protocol):
    """A dataclass of results: short on the terminal, complete in a line of JSON."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


def append(path: Path, task: Task, outcome: Found) -> None:
    """Add one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({"task": asdict(task), "outcome": asdict(outcome)}) + "\n")


def read_lines(path: Path) -> list[tuple[Task, dict[str, Any]]]:
    """What each line says, in the order in which they were written."""
    lines = path.read_text().splitlines() if path.exists() else []
    parsed = [json.loads(line) for line in lines]
    return [(Task(**fields["task"]), fields["outcome"]) for fields in parsed]


def read_fields(path: Path, *, code: str | None = None) -> dict[Task, dict[str, Any]]:
    """What the lines say, or those of one state of the code; of two about the same task, the later."""
    return {
        task: outcome
        for task, outcome in read_lines(path)
        if code is None or outcome["code"] == code
    }


def read(path: Path) -> Outcomes:
    """Read all outcomes so far."""
    return {task: Outcome.of(fields) for task, fields in read_fields(path).items()}
