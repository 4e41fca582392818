"""Lists of different lengths, one after another: list i goes from start[i] to start[i + 1]."""

from collections.abc import Iterable, Sequence, Sized
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

Element = TypeVar("Element")


def starts(lists: Iterable[Sized]) -> Integers:
    """The start of each list, and the end of the last one."""
    return np.cumsum([0, *(len(each) for each in lists)], dtype=np.int64)


def joined(lists: Iterable[Iterable[Element]]) -> list[Element]:
    """All elements in order."""
    return list(chain.from_iterable(lists))


def fields_of(records: Sequence[tuple[int, ...]], fields: int) -> list[Integers]:
    """Convert records of `fields` integers to one array per field; there may be no records."""
    array = np.array(records, np.int64).reshape(-1, fields)
    return list(np.ascontiguousarray(array.T))
