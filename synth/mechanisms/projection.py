"""Fitting a mixture of products to measurements: what the product family shares.

Two objectives. `NoiseBand` is ours: squared residuals in units of each measurement's noise, beyond a
band of one standard deviation, until the rest is no larger than noise alone would leave (the
discrepancy principle): stopping earlier leaves large errors, going further fits noise.
`AboveThreshold` is GEM's (Liu, Vietri, Wu 2021, algorithm 4): the mean absolute error of the queries
that are off by more than gamma, until there are none.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.mechanism import MixtureSpec, OneShotMixtureSpec
from synth.domain import Domain
from synth.measurements import EXACT, Measurement, merge_repeated
from synth.mechanisms.base import Job, measure_once
from synth.models.generators import Generator
from synth.models.product import ProductMixture
from synth.models.relaxed import RelaxedRows
from synth.planning.spending import OneShot, Plan
from synth.queries import QueryBlock, QuerySet, Single

STEPS_PER_REPORT = 50
BAND = 1.0
"""Residuals within one standard deviation are what the truth leaves, too: they pull at nothing."""
LOSS_OF_THE_TRUTH = 0.1507
"""The mean of max(|x| - BAND, 0)^2 for standard normal x."""
PUBLIC_WEIGHT = 3.0
"""How many times as closely as the least noisy measurement a public count is met."""
VISIBLE_IN_A_FIT = 1.5
"""A cell whose value is beyond this many standard deviations is taken for more than noise."""


class Objective(Protocol):
    """What a fit makes small."""

    def loss(self, answers: torch.Tensor) -> torch.Tensor | None:
        """The loss of a mixture's answers; None when the fit is close enough."""


class FitTargets:
    """What a generator is fitted to: queries, their values, and how noisy each value is."""

    def __init__(
        self,
        queries: QuerySet,
        values: NDArray[np.float64],
        noise: NDArray[np.float64],
        device: torch.device,
        picked: torch.Tensor | None = None,
    ) -> None:
        """Fractions of the rows; `picked` are the queries that have a value, where not all do."""
        self._queries = queries
        self._picked = None if picked is None else picked.to(device)
        self.values = torch.as_tensor(values, dtype=torch.float32, device=device)
        self.noise = torch.as_tensor(noise, dtype=torch.float32, device=device)

    @classmethod
    def of(cls, measurements: Sequence[Measurement], rows: int, device: torch.device) -> Self:
        """Measurements of the private rows; repeated ones averaged."""
        averaged, queries = _without_the_unmeasured(merge_repeated(measurements))
        picked = _positions(queries, averaged)
        is_whole = torch.equal(picked, torch.arange(queries.size))
        values = np.concatenate([m.values for m in averaged]) / rows
        least = _least_noise(averaged)
        noise = (
            np.concatenate([np.full(m.query.size, max(m.sigma, least)) for m in averaged]) / rows
        )
        return cls(queries, values, noise, device, None if is_whole else picked)

    def answers(self, mixture: ProductMixture) -> torch.Tensor:
        """The mixture's answers to what was measured."""
        return self._pick(self._queries.on_product(mixture))

    def on_relaxed(self, rows: RelaxedRows) -> torch.Tensor:
        """The answers of rows with soft edges to what was measured."""
        return self._pick(self._queries.on_relaxed(rows))

    def _pick(self, answers: torch.Tensor) -> torch.Tensor:
        return answers if self._picked is None else answers.index_select(0, self._picked)


class NoiseBand:
    """Squared residuals beyond a band of one standard deviation."""

    def __init__(self, measured: FitTargets, stiffness: float = 1.0) -> None:
        """`stiffness`: how much of the noise a generator leaves when it has learnt all it can."""
        self._measured = measured
        # A fit bends towards the noise, once for every cell that it can see: by so much its loss is
        # below the truth's when it has learnt as much as there is to learn.
        visible = (measured.values > VISIBLE_IN_A_FIT * measured.noise).float().mean().item()
        self._enough = stiffness * (1 - visible) * LOSS_OF_THE_TRUTH
        # The largest of m standard normal values is rarely beyond this.
        self._largest = NormalDist().inv_cdf(1 - 0.005 / len(measured.values))

    def loss(self, answers: torch.Tensor) -> torch.Tensor | None:
        """None as soon as the truth itself would be no closer, in the mean and at the worst cell."""
        residuals = ((answers - self._measured.values) / self._measured.noise).abs()
        loss = (residuals - BAND).relu().square().mean()
        if loss.item() <= self._enough and residuals.max().item() <= self._largest:
            return None
        return loss


class AboveThreshold:
    """Absolute errors of the queries that are off by more than gamma."""

    def __init__(self, measured: FitTargets, gamma: float) -> None:
        self._measured = measured
        self._gamma = gamma

    def loss(self, answers: torch.Tensor) -> torch.Tensor | None:
        """None when no query is off by gamma."""
        errors = (answers - self._measured.values).abs()
        far = errors.detach() >= self._gamma
        count = int(far.sum())
        return torch.where(far, errors, 0.0).sum() / count if count else None


class MixtureLearner:
    """A generator, and the optimiser that brings it closer to the measurements."""

    ends_at_best: ClassVar[bool] = False
    """Whether a fit that uses up its steps goes back to the best of them."""

    def __init__(
        self,
        generator: Generator,
        job: Job[Plan],
        spec: MixtureSpec,
        *,
        known: Collection[str] = (),
    ) -> None:
        """`known`: attributes of which the generator knows something already, and keeps it."""
        self.generator = generator.to(job.device)
        self.rows = job.estimated_rows
        self.device = job.device
        self._steps = spec.steps
        self._optimiser = new_optimiser(generator, spec.learning_rate)
        self._known = known
        self._has_started = False

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """The mixture's answers."""
        with torch.no_grad():
            answers = queries.on_product(self.generator.fitted())
        return np.asarray(answers.cpu().numpy(), dtype=np.float64)

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Fit all measurements so far."""
        self.fit(measurements)

    def objective(self, measured: FitTargets) -> Objective:
        """What a fit makes small."""
        return NoiseBand(measured, self.generator.stiffness)

    def fit(
        self,
        measurements: Sequence[Measurement],
        report: Callable[[int, int], None] = lambda step, steps: None,
    ) -> None:
        """Take steps until the objective is met, up to the limit."""
        if not self._has_started:
            shares = one_way_shares(measurements, self.generator.domain, known=self._known)
            self.generator.start(shares.to(self.device))
            self._has_started = True
        measured = FitTargets.of(measurements, self.rows, self.device)
        objective = self.objective(measured)
        best = Best(self.generator) if self.ends_at_best else None
        for step in range(self._steps):
            if step % STEPS_PER_REPORT == 0:
                report(step, self._steps)
            loss = objective.loss(measured.answers(self.generator.fitted()))
            if loss is None:
                break
            if best:
                best.note(loss.item())
            descend(self.generator, self._optimiser, loss)
        else:
            if best:
                with torch.no_grad():
                    last = objective.loss(measured.answers(self.generator.fitted()))
                best.end(0.0 if last is None else last.item())
        report(self._steps, self._steps)


class Best:
    """The weights of a generator at its smallest loss so far."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._loss = math.inf
        self._weights: dict[str, torch.Tensor] = {}

    def note(self, loss: float) -> None:
        """Remember the present weights, if they are better than all before."""
        if loss < self._loss:
            self._loss = loss
            state = self._generator.state_dict()
            self._weights = {name: weight.clone() for name, weight in state.items()}

    def end(self, loss: float) -> None:
        """Go back to the best weights, unless the present ones are."""
        if loss > self._loss:
            self._generator.load_state_dict(self._weights)


def new_optimiser(generator: Generator, learning_rate: float) -> torch.optim.Optimizer:
    """Adam with a short memory of squared gradients: it stumbles less where the loss is steep."""
    return torch.optim.Adam(generator.parameters(), lr=learning_rate, betas=(0.9, 0.99))


def descend(generator: Generator, optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """One step."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    generator.constrain()


def project_once(
    job: Job[OneShot], spec: OneShotMixtureSpec, generator: Generator
) -> ProductMixture:
    """Measure every candidate once, then fit the generator to all of it."""
    MixtureLearner(generator, job, spec).fit(measure_once(job), report=job.progress)
    return generator.released()


def one_way_shares(
    measurements: Sequence[Measurement], domain: Domain, *, known: Collection[str] = ()
) -> torch.Tensor:
    """The share of every code according to the least noisy marginal that tells it; none is zero.

    Attributes that are known already have none (nan).
    """
    shares = [
        np.full(size, np.nan) if name in known else _shares_of(name, size, measurements)
        for name, size in zip(domain.names, domain.sizes, strict=True)
    ]
    return torch.as_tensor(np.concatenate(shares), dtype=torch.float32)


def _shares_of(name: str, size: int, measurements: Sequence[Measurement]) -> NDArray[np.float64]:
    best, least_noise = np.full(size, 1.0), math.inf
    for measurement in measurements:
        query = measurement.query
        if isinstance(query, Single):
            continue
        counts = query.shares(name, measurement.values)
        noise = measurement.sigma * math.sqrt(query.size / size)
        if counts is not None and noise < least_noise:
            best, least_noise = np.maximum(counts, max(noise, 1e-3) / 2), noise
    return np.asarray(best / best.sum(), dtype=np.float64)


def _least_noise(measurements: Sequence[Measurement]) -> float:
    """How closely public counts, which have no noise, are met.

    Several times as closely as the least noisy measurement; if much more, a fit would look at nothing
    else. Almost exactly, where all are public.
    """
    noisy = [measurement.sigma for measurement in measurements if measurement.sigma > 0]
    return min(noisy) / PUBLIC_WEIGHT if noisy else EXACT


def _without_the_unmeasured(
    measurements: Sequence[Measurement],
) -> tuple[list[Measurement], QuerySet]:
    """Blocks of which single queries were measured are cut down to these, where they can be."""
    singles: dict[QueryBlock, list[int]] = {}
    for measurement in measurements:
        query = measurement.query
        if isinstance(query, Single) and not query.block.is_whole:
            singles.setdefault(query.block, []).append(query.index)
    smaller = {block: block.only(indices) for block, indices in singles.items()}
    place = {
        Single(block, index): Single(smaller[block], position)
        for block, indices in singles.items()
        for position, index in enumerate(indices)
    }
    found = [replace(m, query=place[m.query]) if m.query in place else m for m in measurements]
    return found, QuerySet(dict.fromkeys(m.block for m in found))


def _positions(queries: QuerySet, measurements: Sequence[Measurement]) -> torch.Tensor:
    """Where each measured value is among all answers of the blocks it belongs to."""
    start = dict(zip(queries.blocks, queries.offsets, strict=False))
    return torch.as_tensor(
        np.concatenate(
            [
                start[m.block]
                + (
                    np.array([m.query.index])
                    if isinstance(m.query, Single)
                    else np.arange(m.query.size)
                )
                for m in measurements
            ]
        )
    )
