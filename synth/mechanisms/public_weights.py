"""Weights of public rows that agree with noisy marginals, and otherwise keep what the rows say.

A marginal is fitted only as far as it differs from its measurement by more than noise. The excess of the
squared residuals over their noise estimates how wrong the rows are. The error of a cell is taken to be
proportional to its share in variance, so its residual is split between error and noise as the normal
distribution says (empirical Bayes).
"""

import math
from collections.abc import Sequence

from synth.measurements import EXACT, Measurement
from synth.mechanisms.adaptive import Target, sweep, targets
from synth.models.support import Support

PASSES = 40
"""Most sweeps over all marginals."""
CAUTION = 0.1
"""Part of the estimated error that one step may correct. Marginals share errors, and smaller steps correct
them in all at once; docs/defaults.md has the measurements."""
DOUBT = 1.0
"""Standard deviations of its noise by which the excess must differ from zero to count as an error."""


def reweight_rows(public: Support, measurements: Sequence[Measurement], *, rows: int) -> Support:
    """Return the public rows with weights that fit the measurements as far as they are not noise."""
    fitted = Support(public.domain, public.codes, public.weights.clone())
    wanted = targets(measurements, rows)
    sweep(wanted, lambda target: _correct(fitted, target, least=EXACT / rows), passes=PASSES)
    return fitted


def _correct(support: Support, target: Target, *, least: float) -> bool:
    """Take one step towards a marginal; return whether it was off by more than its noise."""
    shares = support.marginal(target.attributes).flatten()
    # No weights can fill a cell in which there is no row.
    filled = shares > 0
    residuals = (target.values - shares).where(filled, 0.0)
    variance = target.noise[0].clamp(min=least) ** 2
    count = int(filled.sum())
    excess = residuals.square().sum() - count * variance
    if excess <= DOUBT * math.sqrt(2 * count) * variance:
        return False
    error = CAUTION * excess * shares / shares.sum()
    corrected = (shares + error / (error + variance) * residuals).clamp(min=0.0)
    factors = (corrected / shares).where(filled, 1.0)
    support.reweight(target.attributes, shares, factors)
    return True
