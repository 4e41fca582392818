"""Noisy answers: measure queries once, and combine measured marginals by least squares.

Papers: Canonne, Kamath, Steinke (2020), the discrete Gaussian mechanism; Xiao, He, Zhang, Kifer (2023),
ResidualPlanner, for the orthogonal parts of marginals and the variance of each answer in closed form.
Algorithm: the budget is divided over the marginals so that the mean squared error of the answers, or their
largest standard error, is smallest (synth/planning/gaussian.py); rho = sum D_r^2 / (2 sigma_r^2). Least
squares combines all measurements (synth/models/noisy_marginals.py).
Under add/remove the parts of the marginals are measured, and the number of rows is the part of no columns.
Under replace-one, and where `measure` names marginals, whole marginals are measured.
Other queries (ranges, trees, prefixes, halfspaces, tables of groups and individuals) are measured and
answered as asked.
Departures: the paper adds correlated noise to fewer numbers. A part is measured here with independent noise
on whole numbers, and projected afterwards, which has the same variance at the same price. Under replace-one
the paper's strategy is not used (docs/adr/0020-parts-of-marginals-for-answers.md).
"""

import numpy as np

from scrim.spec.mechanism import Gaussian
from scrim.spec.workload import NUMBER_OF_GROUPS
from synth.mechanisms.base import Job
from synth.models.noisy_marginals import NoisyBlock, NoisyMarginal, NoisyMarginals
from synth.planning.spending import OneShot
from synth.queries import Marginal, MarginalPart, compile_blocks


def run(job: Job[OneShot], spec: Gaussian) -> NoisyMarginals:
    """Measure each candidate with its share of the budget."""
    blocks = job.candidates.blocks
    marginals: list[NoisyMarginal] = []
    others: list[NoisyBlock] = []
    for done, (block, budget) in enumerate(zip(blocks, job.plan.measure, strict=True)):
        job.progress(done, len(blocks))
        noisy = job.measure(block, budget=budget)
        if isinstance(block, Marginal | MarginalPart):
            counts = noisy.values.reshape(block.sizes).astype(float)
            is_part = isinstance(block, MarginalPart)
            marginals.append(NoisyMarginal(block.attributes, counts, noisy.sigma, is_part=is_part))
        else:
            others.append(NoisyBlock(block.name, noisy.values.astype(float), noisy.sigma))
    job.progress(len(blocks), len(blocks))
    if job.schema.is_linked:  # the groups were counted before the mechanism started
        (groups,) = compile_blocks([NUMBER_OF_GROUPS], job.schema).blocks
        counted = np.array([float(job.estimated_rows)])
        others.append(NoisyBlock(groups.name, counted, job.estimated_rows_sigma))
    return NoisyMarginals(
        job.estimated_rows,
        job.estimated_rows_sigma,
        tuple(marginals),
        spec.consistent,
        others=tuple(others),
    )
