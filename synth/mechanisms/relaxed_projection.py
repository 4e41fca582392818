"""Relaxed projection: fit a mixture of products to marginals that are measured once.

Paper: Aydore et al. (2021), Differentially private query release through adaptive projection; Liu,
Tang, Vietri, Wu (2023), appendix B.4 (RP); Liu, Vietri, Wu (2021), appendix B.2 (softmax).
Algorithm: measure every marginal; minimise the distance between the mixture's answers and the
measurements over the mixture's logits.
Departures: see synth/mechanisms/projection.py for the distance and the stopping rule; the fit starts
at the measured one-way shares.
"""

from functools import partial

from scrim.spec.mechanism import RelaxedProjection
from synth.mechanisms.base import Job
from synth.mechanisms.one_shot import project_once
from synth.models.generators import SoftmaxTable
from synth.models.product import ProductMixture
from synth.planning.spending import OneShot


def run(job: Job[OneShot], spec: RelaxedProjection) -> ProductMixture:
    """Measure all candidates, then project."""
    return project_once(job, spec, partial(SoftmaxTable, job.domain))
