"""Candidates of a generation: each changes one cell of the best rows."""

from typing import NamedTuple

import numpy as np

from synth.genetic.ragged import Floats, Integers


class Candidates(NamedTuple):
    """One element for each candidate."""

    row: Integers
    column: Integers
    value: Floats
    """The new value of the cell."""
    place: Integers
    """The place of the value in its column (synth/genetic/columns.py)."""
    score: Floats
    """Its loss minus that of the best rows; infinite if the candidate is excluded."""


def new_candidates(size: int) -> Candidates:
    """Preallocate `size` candidates."""
    return Candidates(
        row=np.zeros(size, np.int64),
        column=np.zeros(size, np.int64),
        value=np.zeros(size),
        place=np.zeros(size, np.int64),
        score=np.zeros(size),
    )
