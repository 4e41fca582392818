"""What is compared: a private table, what is asked of it, and the mechanisms that compete."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.data import DataSet
from scrim.spec.workload import WorkloadItem


@dataclass(frozen=True)
class Problem:
    """A private table, what is asked of it, and perhaps a public table that assists."""

    private: DataSet
    workload: Sequence[WorkloadItem]
    public: DataSet | None = None


@dataclass(frozen=True)
class Comparison:
    """Mechanisms that compete on one problem, which is read when its turn comes."""

    name: str
    title: str
    mechanisms: tuple[str, ...]
    load: Callable[[], Any]
    """A `Problem`, or what else its judge can judge."""
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """By mechanism, where they are not its defaults."""
