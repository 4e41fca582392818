"""What a job found, kept as one line of JSON, so that an interrupted grid can go on."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


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


Outcomes = dict[Task, Outcome]


def append(path: Path, task: Task, outcome: Outcome) -> None:
    """Add one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({"task": asdict(task), "outcome": asdict(outcome)}) + "\n")


def read(path: Path) -> Outcomes:
    """Everything found so far; of two lines about the same task, the later."""
    return _parse(path.read_text().splitlines()) if path.exists() else {}


def _parse(lines: Iterable[str]) -> Outcomes:
    found: Outcomes = {}
    for line in lines:
        fields = json.loads(line)
        released = fields["outcome"].pop("released_rows")
        found[Task(**fields["task"])] = Outcome(
            **fields["outcome"]
            | {
                "answers": Errors(**fields["outcome"]["answers"]),
                "released_rows": None if released is None else Errors(**released),
            }
        )
    return found
