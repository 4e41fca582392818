"""The outcome of a release of groups and individuals, at each level."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from benchmarks.comparison.outcomes import Outcome, Outcomes, Task, read_fields
from scrim.spec.workload.hierarchical import Level

LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True)
class TwoLevelOutcome:
    """Errors of queries about groups, as fractions of the groups, and of those about individuals."""

    group: Outcome
    individual: Outcome

    def at(self, level: Level) -> Outcome:
        """The outcome at one level."""
        return self.group if level == "group" else self.individual

    def __str__(self) -> str:
        return f"groups: {self.group}; individuals: {self.individual}"


TwoLevelOutcomes = dict[Task, TwoLevelOutcome]


def read(path: Path) -> TwoLevelOutcomes:
    """Read all outcomes so far."""
    return {
        task: TwoLevelOutcome(**{level: Outcome.of(fields[level]) for level in LEVELS})
        for task, fields in read_fields(path).items()
    }


def at_level(outcomes: TwoLevelOutcomes, level: Level) -> Outcomes:
    """The outcomes at one level."""
    return {task: outcome.at(level) for task, outcome in outcomes.items()}
