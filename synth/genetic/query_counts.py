"""Counts of the rows, their targets, and the change of the loss if a row joins or leaves a query.

If a count c with target t and weight w grows by one, w (c - t)^2 grows by w (1 + 2 (c - t)). So the
change of the loss is a sum over the few queries that a changed row joins or leaves.
"""

from typing import NamedTuple

import numpy as np

from synth.genetic.compiled import compiled
from synth.genetic.ragged import Floats, Integers

LEAVES = 0
JOINS = 1


class QueryCounts(NamedTuple):
    """One element for each query."""

    targets: Floats
    """The target of each count."""
    weights: Floats
    """One over the expected variance of count minus target; 0 if the query was not measured."""
    counts: Integers
    """The number of rows that satisfy each query."""
    gains: Floats
    """The change of the loss if a row leaves the query, and if one joins it."""


def new_query_counts(targets: Floats, weights: Floats, counts: Integers) -> QueryCounts:
    """Compare the counts of rows with their targets."""
    residuals = counts - targets
    gains = weights[:, None] * np.stack([1 - 2 * residuals, 1 + 2 * residuals], axis=1)
    return QueryCounts(targets, weights, counts, gains)


def loss_of(query_counts: QueryCounts) -> float:
    """Equation 2, weighted: the sum of squared residuals in units of their noise."""
    return float(query_counts.weights @ (query_counts.counts - query_counts.targets) ** 2)


@compiled
def move(query_counts: QueryCounts, query: int, direction: int) -> None:
    """Update the counts when a row joins or leaves a query."""
    query_counts.counts[query] += 1 if direction == JOINS else -1
    # Computed from the integer count, so that rounding errors do not accumulate over many changes.
    residual = query_counts.counts[query] - query_counts.targets[query]
    query_counts.gains[query, LEAVES] = query_counts.weights[query] * (1 - 2 * residual)
    query_counts.gains[query, JOINS] = query_counts.weights[query] * (1 + 2 * residual)
