"""Fitting generators to what was measured once: several from different starts, released together.

Each generator minimises the squared residuals in units of their noise: the likelihood of Gaussian
noise. Three things keep it from fitting the noise as well. Its step size falls to zero over a number of
steps that grows with how far the counts stand out from their noise. It stops when its residuals are as
small as the truth would leave them, less what any fit bends towards the noise (the discrepancy
principle). And the generators' errors are averaged: each fits the noise in another way.
docs/defaults.md has the measurements.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import NormalDist

import torch

from scrim.spec.mechanism import OneShotMixtureSpec
from synth.measurements import Measurement
from synth.mechanisms.base import Job, measure_once
from synth.mechanisms.projection import (
    STEPS_PER_REPORT,
    Best,
    FitTargets,
    descend,
    new_optimiser,
    one_way_shares,
)
from synth.models.generators import Generator
from synth.models.product import ProductMixture
from synth.planning.mixture import members_of
from synth.planning.one_shot import steps_for
from synth.planning.spending import OneShot

FIT_STANDS_OUT, FIT_BENDS = 3.0, 0.55
"""A cell stands out if its value is beyond this many standard deviations, and by how much a fit may bend
towards the noise for each of them: on ADULT, ADULT reduced and LOANS the mean error is close to its
smallest where squared residuals are 1 - 0.55 v of the noise, v the share of cells that stand out."""

NewGenerator = Callable[[int, int], Generator]
"""Creates a generator with a number of components from a seed."""


def project_once(
    job: Job[OneShot], spec: OneShotMixtureSpec, new_generator: NewGenerator
) -> ProductMixture:
    """Measure every candidate once, then fit the members of the ensemble to all of it."""
    return fit_members(job, spec, measure_once(job), new_generator)


def fit_members(
    job: Job[OneShot],
    spec: OneShotMixtureSpec,
    measurements: Sequence[Measurement],
    new_generator: NewGenerator,
) -> ProductMixture:
    """Fit every member of the ensemble to all measurements, each from another start."""
    known = [*job.known_zeros, *measurements]
    targets = FitTargets.of(known, job.estimated_rows, job.device)
    shares = one_way_shares(measurements, job.domain).to(job.device)
    members = members_of(spec, len(targets.values))
    fitted: list[torch.Tensor] = []
    for member in range(members):
        generator = new_generator(spec.components, member).to(job.device)
        generator.start(shares)
        report = partial(_report, job, member * spec.steps, members * spec.steps)
        fit(generator, targets, rate=spec.learning_rate, limit=spec.steps, report=report)
        fitted.append(generator.released().probabilities)
    return ProductMixture(job.domain, torch.cat(fitted))


def _report(job: Job[OneShot], before: int, total: int, step: int) -> None:
    job.progress(before + step, total)


def fit(
    generator: Generator,
    targets: FitTargets,
    *,
    rate: float,
    limit: int,
    report: Callable[[int], None] = lambda step: None,
) -> None:
    """Minimise the squared residuals until they are as small as the truth's; end at the best step."""
    optimiser = new_optimiser(generator, rate)
    is_close = _stopping_test(targets)
    best = Best(generator)
    step, steps = 0, limit
    while True:
        residuals = (targets.answers(generator.fitted()) - targets.values) / targets.noise
        loss = residuals.square().mean()
        discrepancy = loss.item()
        if step == 0:
            steps = steps_for((discrepancy - 1) * len(residuals), limit)
            rate *= max(1.0, steps / generator.steps_at_rate)
        if step == steps or is_close(discrepancy, residuals):
            best.end(discrepancy)
            break
        if step % STEPS_PER_REPORT == 0:
            report(step)
        best.note(discrepancy)
        _set_rate(optimiser, rate * (1 + math.cos(math.pi * step / steps)) / 2)
        descend(generator, optimiser, loss)
        step += 1
    report(limit)


def _stopping_test(targets: FitTargets) -> Callable[[float, torch.Tensor], bool]:
    """Whether the truth itself would be no closer, on average and at the worst cell."""
    share = (targets.values > FIT_STANDS_OUT * targets.noise).float().mean().item()
    # What rules say is zero has no noise to leave.
    enough = max(0.0, targets.noisy_share - FIT_BENDS * share)
    # The largest of m standard normal values is rarely beyond this.
    largest = NormalDist().inv_cdf(1 - 0.005 / len(targets.values))

    def is_close(discrepancy: float, residuals: torch.Tensor) -> bool:
        return discrepancy <= enough and residuals.abs().max().item() <= largest

    return is_close


def _set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate
