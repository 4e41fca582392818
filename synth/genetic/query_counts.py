"""Counts of the rows, what they should be, and what it would change if a row joined or left a query.

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
    """What the count should be."""
    weights: Floats
    """One over the variance that it is expected to miss it by; 0 where nothing was measured."""
    counts: Integers
    """How many rows satisfy it."""
    gains: Floats
    """The change of the loss if a row left it, and if one joined it."""


def new_tally(targets: Floats, weights: Floats, counts: Integers) -> QueryCounts:
    """The tally of rows that were counted."""
    residuals = counts - targets
    gains = weights[:, None] * np.stack([1 - 2 * residuals, 1 + 2 * residuals], axis=1)
    return QueryCounts(targets, weights, counts, gains)


def loss_of(tally: QueryCounts) -> float:
    """Equation 2, weighted: the sum of squared residuals in units of their noise."""
    return float(tally.weights @ (tally.counts - tally.targets) ** 2)


@compiled
def move(tally: QueryCounts, query: int, direction: int) -> None:
    """A row joins or leaves a query."""
    tally.counts[query] += 1 if direction == JOINS else -1
    # From the whole count, so that no rounding adds up over millions of changes.
    residual = tally.counts[query] - tally.targets[query]
    tally.gains[query, LEAVES] = tally.weights[query] * (1 - 2 * residual)
    tally.gains[query, JOINS] = tally.weights[query] * (1 + 2 * residual)
