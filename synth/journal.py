"""The record of what was asked, what it cost and what came out: the one thing a resume reads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Operation:
    """One charged access to the data and its noisy outcome, committed together."""

    kind: str
    asked: str
    scale: float
    price: int
    values: NDArray[np.int64]


class JournalMismatch(Exception):
    """The journal holds the outcome of another question than the one asked now."""


class Journal(Protocol):
    """Where operations are committed. A commit either stores charge and outcome, or raises."""

    def operations(self) -> Sequence[Operation]:
        """Every committed operation, in order."""

    def commit(self, operation: Operation) -> None:
        """Store the operation for good. Its outcome may be used only after this returns."""


class MemoryJournal:
    """A journal for library use and tests: it lives as long as the process."""

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        self._operations = list(operations)

    def operations(self) -> Sequence[Operation]:
        """Every committed operation, in order."""
        return tuple(self._operations)

    def commit(self, operation: Operation) -> None:
        """Keep the operation."""
        self._operations.append(operation)
