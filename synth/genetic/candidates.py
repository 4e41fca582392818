"""Candidates of a generation: each is the best rows with another value in one cell."""

from typing import NamedTuple

import numpy as np

from synth.genetic.ragged import Floats, Integers


class Candidates(NamedTuple):
    """One element for each candidate."""

    row: Integers
    column: Integers
    value: Floats
    """What the cell would hold."""
    place: Integers
    """Where the value is in its column (synth/genetic/columns.py)."""
    score: Floats
    """By how much its loss is above that of the best rows; infinite where it is out of question."""


def new_candidates(size: int) -> Candidates:
    """Room for so many."""
    return Candidates(
        row=np.zeros(size, np.int64),
        column=np.zeros(size, np.int64),
        value=np.zeros(size),
        place=np.zeros(size, np.int64),
        score=np.zeros(size),
    )
