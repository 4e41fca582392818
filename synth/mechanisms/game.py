"""The query player, which all release games share: it draws critics where the data are wrong.

Critics are the queries and their negations. Drawing one with probability proportional to
exp(rate * regret) is at once the hedge strategy (multiplicative weights), follow-the-perturbed-leader
with Gumbel noise, and the exponential mechanism: the same noise gives both no regret and privacy
(docs/privacy.md, section 2).
"""

import math

import numpy as np
from numpy.typing import NDArray

from scrim.spec.budget import rho_of_units
from synth.mechanisms.base import Job
from synth.planning.spending import Draws

SAFETY = 1 - 2**-18
"""The rate is slightly below what the plan pays for, so that rounding never costs a unit, neither the
rounding of prices nor that of copied scores (docs/privacy.md, section 2.4)."""

Critics = dict[int, int]
"""The number of draws of each query minus those of its negation; zeros are left out."""


def draw_critics(
    job: Job[Draws], past_answers: NDArray[np.float64], *, past: int, turn: int
) -> Critics:
    """Draw the critics of one turn by the regret of `past` rounds, at the plan's price."""
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
    """Return the rate at which a draw costs `price`: rho = rate^2 past^2 c^2 / (2 n_hat^2).

    The rate depends on the measured number of rows; the price is planned before and does not.
    """
    if past == 0:
        return 1.0  # no regret yet: at any rate all critics are equally likely and a draw is free
    unit = past * job.door.protection.max_rows_per_unit / job.estimated_rows
    return SAFETY * math.sqrt(2 * rho_of_units(price)) / unit
