"""Weights of public rows that agree with noisy marginals, and otherwise keep what the rows say."""

from collections.abc import Sequence

from synth.measurements import Measurement
from synth.mechanisms.adaptive import Target, sweep, targets
from synth.models.entropy_projection import project_beyond_noise
from synth.models.support import Support

PASSES = 40
"""Most sweeps over all marginals."""
LEAST_EXCESS = 1.0
"""Standard deviations by which a marginal must differ from its measurement, as `pep` has them."""


def reweight_rows(public: Support, measurements: Sequence[Measurement], *, rows: int) -> Support:
    """Return the public rows with weights that fit the measurements as far as they are not noise."""
    fitted = Support(public.domain, public.codes, public.weights.clone())

    def step(target: Target) -> bool:
        return project_beyond_noise(
            fitted, target.attributes, target.values, target.noise, tolerance=LEAST_EXCESS
        )

    sweep(targets(measurements, rows), step, passes=PASSES)
    return fitted
