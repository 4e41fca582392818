"""Rows and their distance to measured counts, in a form that is fast to update when one cell changes.

Paper: Liu, Tang, Vietri, Wu (2023), equation 2, with every query weighted by the precision with which it
is measured and can be met: the sum over q of (c_q - N' a_q)^2 / ((N' noise_q)^2 + 1/12).

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
from synth.genetic.query_counts import QueryCounts, new_query_counts
from synth.genetic.ragged import Floats, Integers
from synth.genetic.tables import Tables, change_tables, count_in_tables, new_tables

ROUNDING = 1 / 12
"""Variance of rounding to whole rows. Without it, counts that are known to a fraction of a row would
dominate the loss with an error that no rows can avoid."""


class Evaluation(NamedTuple):
    """The best rows, the measurements, and all values that depend on the rows."""

    values: Floats
    """One line per row, one column per attribute: codes of categories, numbers or NaN."""
    places: Integers
    columns: Columns
    tables: Tables
    conjunctions: ConjunctionArrays
    halfspaces: HalfspaceArrays
    query_counts: QueryCounts


def evaluate(values: Floats, features: MeasuredFeatures, schema: Schema) -> Evaluation:
    """Compare rows with the measurements. The rows will be changed in place."""
    names = [column.name for column in schema.attributes]
    columns = new_columns(schema, features.cuts())
    places = columns.places(values)
    tables = new_tables(features.tables, names, columns, places)
    cells = int(tables.cell_start[-1])
    conjunctions = new_conjunctions(features.conjunctions, names, columns, first_query=cells)
    halfspaces = new_halfspaces(
        features.halfspaces,
        schema.attributes,
        values,
        first_query=cells + len(features.conjunctions),
    )
    counts = [
        count_in_tables(tables),
        count_in_conjunctions(conjunctions, places),
        count_in_halfspaces(halfspaces),
    ]
    rows = len(values)
    weights = 1 / ((rows * features.noise) ** 2 + ROUNDING)
    query_counts = new_query_counts(rows * features.values, weights, np.concatenate(counts))
    return Evaluation(values, places, columns, tables, conjunctions, halfspaces, query_counts)


@compiled
def score(best: Evaluation, candidates: Candidates, start: int, end: int) -> None:
    """Compute by how much the candidates from `start` to `end` would change the loss."""
    for index in range(start, end):
        column, value = candidates.column[index], candidates.value[index]
        old = best.values[candidates.row[index], column]
        changes_nothing = value == old or (math.isnan(value) and math.isnan(old))
        candidates.place[index] = place_of(best.columns, column, value)
        candidates.score[index] = math.inf if changes_nothing else 0.0
    _change(best, candidates, start, end, False)


@compiled
def keep(best: Evaluation, candidates: Candidates, index: int) -> None:
    """Apply a scored candidate to the best rows."""
    _change(best, candidates, index, index + 1, True)
    row, column = candidates.row[index], candidates.column[index]
    best.places[row, column] = candidates.place[index]
    best.values[row, column] = candidates.value[index]


@compiled
def _change(best: Evaluation, candidates: Candidates, start: int, end: int, is_kept: bool) -> None:
    """Add the change of each kind of query to the scores; if `is_kept`, apply the changes too."""
    query_counts, places, values = best.query_counts, best.places, best.values
    change_tables(best.tables, query_counts, candidates, start, end, is_kept)
    change_conjunctions(best.conjunctions, query_counts, places, candidates, start, end, is_kept)
    change_halfspaces(
        best.halfspaces, query_counts, best.columns, values, candidates, start, end, is_kept
    )
