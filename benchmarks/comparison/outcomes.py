"""What a job found, kept as one line of JSON, so that an interrupted grid can go on."""

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


@dataclass(frozen=True)
class Outcome:
    """The errors of one release, and how long it took."""

    rows: int
    """Private rows, and as many synthetic ones."""
    queries: int
    answers: Errors
    """Of the model's answers."""
    released_rows: Errors | None
    """Of the answers that the synthetic rows give; none where there are none."""
    seconds: float
    processor_seconds: float
    """Summed over the threads, so that a busy machine shows less."""
    code: str
    """Which state of the algorithms ran."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """What a line says."""
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
    """A dataclass that says what was found, in a few words on the terminal and in full in a line."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


def append(path: Path, task: Task, outcome: Found) -> None:
    """Add one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({"task": asdict(task), "outcome": asdict(outcome)}) + "\n")


def read_fields(path: Path) -> dict[Task, dict[str, Any]]:
    """What the lines say; of two about the same task, the later."""
    lines = path.read_text().splitlines() if path.exists() else []
    parsed = [json.loads(line) for line in lines]
    return {Task(**fields["task"]): fields["outcome"] for fields in parsed}


def read(path: Path) -> Outcomes:
    """Everything found so far."""
    return {task: Outcome.of(fields) for task, fields in read_fields(path).items()}
