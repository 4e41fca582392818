"""The best tables after the best one.

An elite differs from the best rows in a few cells and is stored as a list of those. Whenever the best
rows change, their previous state becomes the first elite. So each elite is dropped after at most as many
changes as there are elites, and no list is longer than that.
"""

from typing import NamedTuple

import numpy as np

from synth.genetic.compiled import compiled
from synth.genetic.ragged import Floats, Integers


class Elites(NamedTuple):
    """The best tables after the best one, in order of increasing loss."""

    excess: Floats
    """The loss of each elite minus that of the best rows; infinite for unused entries."""
    size: Integers
    """The number of cells in which each differs from the best rows."""
    row: Integers
    column: Integers
    value: Floats
    """Those cells: one row per elite."""


def new_elites(others: int) -> Elites:
    """Preallocate `others` elites besides the best rows."""
    return Elites(
        excess=np.full(others, np.inf),
        size=np.zeros(others, np.int64),
        row=np.zeros((others, others), np.int64),
        column=np.zeros((others, others), np.int64),
        value=np.zeros((others, others)),
    )


@compiled
def cell_of(values: Floats, elites: Elites, elite: int, row: int, column: int) -> float:
    """The value of a cell in an elite."""
    cell = _find(elites, elite, row, column)
    return float(values[row, column] if cell < 0 else elites.value[elite, cell])


@compiled
def succeed(elites: Elites, row: int, column: int, old: float, improvement: float) -> None:
    """Update the elites before a cell of the best rows changes; their own cells keep the old value."""
    if len(elites.excess) == 0:
        return
    for elite in range(len(elites.excess) - 1):  # the last one is dropped
        elites.excess[elite] += improvement
        if _find(elites, elite, row, column) < 0:
            _append(elites, elite, row, column, old)
    insert(elites, row, column, old, improvement)


@compiled
def insert(elites: Elites, row: int, column: int, value: float, excess: float) -> None:
    """Insert an elite that differs from the best rows in one cell; elites that are no better move down."""
    elite = len(elites.excess) - 1
    while elite > 0 and elites.excess[elite - 1] >= excess:
        _replace(elites, elite, elite - 1)
        elite -= 1
    elites.excess[elite] = excess
    elites.size[elite] = 0
    _append(elites, elite, row, column, value)


@compiled
def _replace(elites: Elites, elite: int, other: int) -> None:
    elites.excess[elite] = elites.excess[other]
    elites.size[elite] = 0
    for cell in range(elites.size[other]):
        _append(
            elites,
            elite,
            elites.row[other, cell],
            elites.column[other, cell],
            elites.value[other, cell],
        )


@compiled
def _append(elites: Elites, elite: int, row: int, column: int, value: float) -> None:
    cell = elites.size[elite]
    elites.row[elite, cell] = row
    elites.column[elite, cell] = column
    elites.value[elite, cell] = value
    elites.size[elite] += 1


@compiled
def _find(elites: Elites, elite: int, row: int, column: int) -> int:
    """The position of a cell among those in which an elite differs from the best rows; -1 if not found."""
    for cell in range(elites.size[elite]):
        if elites.row[elite, cell] == row and elites.column[elite, cell] == column:
            return cell
    return -1
