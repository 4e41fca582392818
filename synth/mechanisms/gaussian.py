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
    blocks = job.candidates.blocks
    measured = []
    for done, (block, budget) in enumerate(zip(blocks, job.plan.measure, strict=True)):
        assert isinstance(block, Marginal)
        job.progress(done, len(blocks))
        noisy = job.door.measure(block, budget=budget)
        counts = noisy.values.reshape(block.sizes).astype(float)
        measured.append(NoisyMarginal(block.attributes, counts, noisy.sigma))
    job.progress(len(blocks), len(blocks))
    return NoisyMarginals(
        job.estimated_rows, job.estimated_rows_sigma, tuple(measured), spec.consistent
    )
