"""Rows and their distance to measured counts, kept so that one changed cell is quickly told.

Paper: Liu, Tang, Vietri, Wu (2023), equation 2, with every query weighted by how precisely it is known
and can be met: the sum over q of (c_q - N' a_q)^2 / ((N' noise_q)^2 + 1/12).

Memory: for each row 16 bytes per column, 4 per reading of a column and 8 per halfspace; for each query
40 bytes and its description (24 bytes per condition of a conjunction, twice; for a halfspace 8 bytes
per category and twice that per column of numbers). Nothing grows with rows times cells.
"""

import math
from typing import NamedTuple

import numpy as np

from scrim.spec.schema import Schema
from synth.genetic.candidates import Candidates
from synth.genetic.columns import Columns, new_columns, place_of
from synth.genetic.compiled import compiled
from synth.genetic.conjunctions import (
    ConjunctionArrays,
    change_conjunctions,
    count_in_conjunctions,
    new_conjunctions,
)
from synth.genetic.halfspaces import (
    HalfspaceArrays,
    change_halfspaces,
    count_in_halfspaces,
    new_halfspaces,
)
from synth.genetic.measured_features import MeasuredFeatures
from synth.genetic.query_counts import QueryCounts, new_tally
from synth.genetic.ragged import Floats, Integers
from synth.genetic.tables import Tables, change_tables, count_in_tables, new_tables

ROUNDING = 1 / 12
"""Variance of what rounding to whole rows leaves. Without it, counts that are known to a fraction of
a row would outweigh all others by what no rows can meet."""


class Evaluation(NamedTuple):
    """The best rows, what they are compared with, and all that changes with them."""

    values: Floats
    """One row for each row, one column for each attribute: codes of categories, numbers or NaN."""
    places: Integers
    columns: Columns
    tables: Tables
    conjunctions: ConjunctionArrays
    halfspaces: HalfspaceArrays
    tally: QueryCounts


def evaluate(values: Floats, parts: MeasuredFeatures, schema: Schema) -> Evaluation:
    """Compare rows with what was measured. They will be changed in place."""
    names = [column.name for column in schema.attributes]
    columns = new_columns(schema, parts.cuts())
    places = columns.places(values)
    tables = new_tables(parts.tables, names, columns, places)
    cells = int(tables.cell_start[-1])
    conjunctions = new_conjunctions(parts.conjunctions, names, columns, first_query=cells)
    halfspaces = new_halfspaces(
        parts.halfspaces,
        schema.attributes,
        values,
        first_query=cells + len(parts.conjunctions),
    )
    counts = [
        count_in_tables(tables),
        count_in_conjunctions(conjunctions, places),
        count_in_halfspaces(halfspaces),
    ]
    rows = len(values)
    weights = 1 / ((rows * parts.noise) ** 2 + ROUNDING)
    tally = new_tally(rows * parts.values, weights, np.concatenate(counts))
    return Evaluation(values, places, columns, tables, conjunctions, halfspaces, tally)


@compiled
def score(best: Evaluation, candidates: Candidates, start: int, end: int) -> None:
    """Tell by how much some candidates would change the loss."""
    for index in range(start, end):
        column, value = candidates.column[index], candidates.value[index]
        old = best.values[candidates.row[index], column]
        changes_nothing = value == old or (math.isnan(value) and math.isnan(old))
        candidates.place[index] = place_of(best.columns, column, value)
        candidates.score[index] = math.inf if changes_nothing else 0.0
    _change(best, candidates, start, end, False)


@compiled
def keep(best: Evaluation, candidates: Candidates, index: int) -> None:
    """Let a candidate that was scored become the best rows."""
    _change(best, candidates, index, index + 1, True)
    row, column = candidates.row[index], candidates.column[index]
    best.places[row, column] = candidates.place[index]
    best.values[row, column] = candidates.value[index]


@compiled
def _change(best: Evaluation, candidates: Candidates, start: int, end: int, is_kept: bool) -> None:
    """Add to the scores what each kind of queries has to say; where they are kept, make them so."""
    tally, places, values = best.tally, best.places, best.values
    change_tables(best.tables, tally, candidates, start, end, is_kept)
    change_conjunctions(best.conjunctions, tally, places, candidates, start, end, is_kept)
    change_halfspaces(best.halfspaces, tally, best.columns, values, candidates, start, end, is_kept)
