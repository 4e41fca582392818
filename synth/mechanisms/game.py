"""The query player of the release game, which all games share: it draws critics where the data are wrong.

Critics are the queries and their negations. Drawing one in proportion to exp(rate * regret) is the
hedge strategy (multiplicative weights), follow-the-perturbed-leader with Gumbel noise, and the
exponential mechanism at once: the same noise gives no regret and privacy (docs/privacy.md, section 2).
"""

import math

import numpy as np
from numpy.typing import NDArray

from scrim.spec.budget import rho_of_units
from synth.mechanisms.base import Job
from synth.planning.spending import Draws

SAFETY = 1 - 2**-18
"""The rate is a little below what the plan pays for, so that rounding never costs a unit: neither that
of prices nor that of copied scores (docs/privacy.md, section 2.4)."""

Critics = dict[int, int]
"""How often each query was drawn, less how often its negation was; those that cancel are left out."""


def draw_critics(
    job: Job[Draws], past_answers: NDArray[np.float64], *, past: int, turn: int
) -> Critics:
    """Draw the critics of one turn by the regret of `past` rounds, for what the plan says."""
    drawn = job.door.hedge_draw(
        job.candidates,
        past_answers,
        rows=job.estimated_rows,
        rate=_rate(job, job.plan.prices[turn], past),
        past=past,
        draws=job.plan.per_round,
    )
    weights: Critics = {}
    for critic in drawn:
        query, sign = critic % job.candidates.size, 1 if critic < job.candidates.size else -1
        weights[query] = weights.get(query, 0) + sign
    return {query: weight for query, weight in weights.items() if weight}


def _rate(job: Job[Draws], price: int, past: int) -> float:
    """The rate whose draws have that price: rho = rate^2 past^2 c^2 / (2 n_hat^2).

    It follows from the measured number of rows, so that the price does not: that is planned before.
    """
    if past == 0:
        return 1.0  # nothing is regretted yet: all are equally likely at any rate, and cost nothing
    unit = past * job.door.protection.max_rows_per_unit / job.estimated_rows
    return SAFETY * math.sqrt(2 * rho_of_units(price)) / unit
