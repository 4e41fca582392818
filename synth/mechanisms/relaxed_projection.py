"""Relaxed projection: fit a mixture of products to marginals that were measured once.

Paper: Aydore et al. (2021), Differentially private query release through adaptive projection; Liu,
Tang, Vietri, Wu (2023), appendix B.4 (RP); Liu, Vietri, Wu (2021), appendix B.2 (softmax).
Algorithm: measure every marginal with an equal share of the budget; minimise the squared distance
between the mixture's answers and the measurements over the mixture's logits.
Departures: the distance is in units of each measurement's noise, and the fit stops as soon as it is
as close as the noise lets the truth be, in the mean and at the worst cell (the discrepancy
principle): stopping earlier leaves large errors, going further fits noise.
"""

import math
from collections.abc import Sequence

import torch

from synth.domain import Domain
from synth.door import Measurement
from synth.mechanisms.base import Job
from synth.models.product import ProductMixture
from synth.queries import QueryGroup, QuerySet
from synth.spec.mechanism import RelaxedProjection

INITIALISATION_SEED = 0
"""The start of the optimiser is public: it decides nothing about privacy."""
STEPS_PER_REPORT = 50
INITIAL_SPREAD = 0.1
"""Nearly uniform components: what no measurement asks for stays uniform."""


def run(job: Job, spec: RelaxedProjection) -> ProductMixture:
    """Measure all candidates, then project."""
    plan = spec.plan(len(job.candidates.groups), job.budget)
    measured = [job.door.measure(group, budget=plan.measure) for group in job.candidates.groups]
    logits = initial_logits(spec.components, job.domain)
    optimiser = torch.optim.Adam([logits], lr=spec.learning_rate)
    distance = Distance(measured, job.rows)
    for step in range(spec.steps):
        if step % STEPS_PER_REPORT == 0:
            job.progress(step, spec.steps)
        residuals = distance.residuals(mixture_of(logits, job.domain))
        if distance.within_noise(residuals.detach()):
            break
        optimiser.zero_grad()
        residuals.square().mean().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    job.progress(spec.steps, spec.steps)
    return mixture_of(logits.detach(), job.domain)


class Distance:
    """How far a mixture's answers are from the measurements, in units of their noise."""

    def __init__(self, measured: Sequence[Measurement], rows: int) -> None:
        self._queries = QuerySet(m.query for m in measured if isinstance(m.query, QueryGroup))
        self._target = torch.cat(
            [torch.as_tensor(m.values / rows, dtype=torch.float32) for m in measured]
        )
        # A public count has no noise; it is met to within a thousandth of a row.
        sigmas = [torch.full((m.query.size,), max(m.sigma, 1e-3)) for m in measured]
        self._noise = torch.cat(sigmas) / rows
        # The largest of m standard normal values is about this.
        self._largest = max(1.0, math.sqrt(2 * math.log(len(self._target))))

    def residuals(self, mixture: ProductMixture) -> torch.Tensor:
        """Errors of all measured cells."""
        return (self._queries.on_product(mixture) - self._target) / self._noise

    def within_noise(self, residuals: torch.Tensor) -> bool:
        """Whether the truth itself would be no closer, neither in the mean nor at the worst cell."""
        return bool(residuals.square().mean() <= 1 and residuals.abs().max() <= self._largest)


def initial_logits(components: int, domain: Domain) -> torch.Tensor:
    """A nearly uniform start, slightly different in each component."""
    generator = torch.Generator().manual_seed(INITIALISATION_SEED)
    logits = torch.randn(components, sum(domain.sizes), generator=generator)
    return (INITIAL_SPREAD * logits).requires_grad_()


def mixture_of(logits: torch.Tensor, domain: Domain) -> ProductMixture:
    """One softmax for each attribute of each component."""
    blocks = [block.softmax(dim=1) for block in torch.split(logits, list(domain.sizes), dim=1)]
    return ProductMixture(domain, torch.cat(blocks, dim=1))
