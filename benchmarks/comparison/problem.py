"""What is compared: a private table, its workload, and the mechanisms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.data import DataSet
from scrim.spec.workload import WorkloadItem


@dataclass(frozen=True)
class Problem:
    """A private table, its workload, and optionally a public table."""

    private: DataSet
    workload: Sequence[WorkloadItem]
    public: DataSet | None = None


@dataclass(frozen=True)
class Comparison:
    """Mechanisms that are compared on one problem, which is loaded when it is run."""

    name: str
    title: str
    mechanisms: tuple[str, ...]
    load: Callable[[], Any]
    """Loads a `Problem`, or another object that its judge accepts."""
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Parameters by mechanism, if they differ from the defaults."""
