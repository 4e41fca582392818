"""The best tables after the best one.

An elite differs from the best rows in a few cells, and is kept as a list of those. Whenever the best
rows change, what they were becomes an elite ahead of all others. So none outlives as many changes as
there are elites, and no list is longer than that.
"""

from typing import NamedTuple

import numpy as np

from synth.genetic.compiled import compiled
from synth.genetic.ragged import Floats, Integers


class Elites(NamedTuple):
    """The best tables after the best one, from the better to the worse."""

    excess: Floats
    """By how much the loss of each is above that of the best; infinite where there is none yet."""
    size: Integers
    """In how many cells each differs from the best."""
    row: Integers
    column: Integers
    value: Floats
    """Those cells: one row for each elite."""


def new_elites(others: int) -> Elites:
    """Room for so many beside the best rows."""
    return Elites(
        excess=np.full(others, np.inf),
        size=np.zeros(others, np.int64),
        row=np.zeros((others, others), np.int64),
        column=np.zeros((others, others), np.int64),
        value=np.zeros((others, others)),
    )


@compiled
def cell_of(values: Floats, elites: Elites, elite: int, row: int, column: int) -> float:
    """What an elite holds in a cell."""
    cell = _find(elites, elite, row, column)
    return float(values[row, column] if cell < 0 else elites.value[elite, cell])


@compiled
def succeed(elites: Elites, row: int, column: int, old: float, improvement: float) -> None:
    """A cell of the best rows is about to change: in all elites it stays what it was."""
    if len(elites.excess) == 0:
        return
    for elite in range(len(elites.excess) - 1):  # the last one drops out
        elites.excess[elite] += improvement
        if _find(elites, elite, row, column) < 0:
            _append(elites, elite, row, column, old)
    insert(elites, row, column, old, improvement)


@compiled
def insert(elites: Elites, row: int, column: int, value: float, excess: float) -> None:
    """A new elite, in one cell unlike the best rows; those that are no better move down."""
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
    """Where a cell is among those in which an elite differs from the best; -1 if it does not."""
    for cell in range(elites.size[elite]):
        if elites.row[elite, cell] == row and elites.column[elite, cell] == column:
            return cell
    return -1
