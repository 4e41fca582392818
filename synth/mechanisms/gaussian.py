"""Noisy answers: measure every marginal once.

Paper: Canonne, Kamath, Steinke (2020), the discrete Gaussian mechanism.
Algorithm: the budget is divided evenly over the marginals; rho = sum D_r^2 / (2 sigma_r^2).
"""

from scrim.spec.mechanism import Gaussian
from synth.mechanisms.base import Job
from synth.models.noisy_marginals import NoisyMarginal, NoisyMarginals
from synth.planning.spending import OneShot
from synth.queries import Marginal


def run(job: Job[OneShot], spec: Gaussian) -> NoisyMarginals:
    """Measure each candidate marginal with an equal share of the budget."""
    groups = job.candidates.groups
    measured = []
    for done, (group, budget) in enumerate(zip(groups, job.plan.measure, strict=True)):
        assert isinstance(group, Marginal)
        job.progress(done, len(groups))
        noisy = job.door.measure(group, budget=budget)
        counts = noisy.values.reshape(group.sizes).astype(float)
        measured.append(NoisyMarginal(group.attributes, counts, noisy.sigma))
    job.progress(len(groups), len(groups))
    return NoisyMarginals(job.rows, job.rows_sigma, tuple(measured), spec.consistent)
