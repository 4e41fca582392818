"""The record of operations, their prices and outcomes, from which a job is resumed."""

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
    """The journal holds the outcome of a different operation."""


class Journal(Protocol):
    """Stores committed operations. A commit either stores the charge and the outcome, or raises."""

    def operations(self) -> Sequence[Operation]:
        """Every committed operation, in order."""

    def commit(self, operation: Operation) -> None:
        """Store the operation permanently. Its outcome may be used only after this returns."""


class MemoryJournal:
    """A journal in memory, for library use and tests."""

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        self._operations = list(operations)

    def operations(self) -> Sequence[Operation]:
        """Every committed operation, in order."""
        return tuple(self._operations)

    def commit(self, operation: Operation) -> None:
        """Keep the operation."""
        self._operations.append(operation)
