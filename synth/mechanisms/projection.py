"""Fitting a mixture of products to measurements; shared by all mechanisms that release mixtures.

There are two objectives. `NoiseBand` is ours: squared residuals in units of each measurement's noise,
in excess of a band of one standard deviation, until they are no larger than noise alone would leave them
(the discrepancy principle). Stopping earlier leaves large errors; going further fits noise.
`AboveThreshold` is GEM's (Liu, Vietri, Wu 2021, algorithm 4): the mean absolute error of the queries
that are off by gamma or more, until there are none.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.mechanism import MixtureSpec
from synth.domain import Domain
from synth.measurements import Measurement, least_noise, merge_repeated
from synth.mechanisms.base import Job
from synth.models.generators import Generator
from synth.models.product import ProductMixture
from synth.models.relaxed import RelaxedRows
from synth.planning.spending import Plan
from synth.queries import QueryBlock, QuerySet, Single

STEPS_PER_REPORT = 50
"""Steps of the optimiser between two reports of progress."""
BAND = 1.0
"""Residuals within this many standard deviations have no loss: the truth leaves such residuals too."""
LOSS_OF_THE_TRUTH = 0.1507
"""The mean of max(|x| - BAND, 0)^2 for standard normal x."""
VISIBLE_IN_A_FIT = 1.5
"""A cell whose value exceeds this many standard deviations is treated as more than noise."""


class Objective(Protocol):
    """The quantity that a fit minimises."""

    def loss(self, answers: torch.Tensor) -> torch.Tensor | None:
        """Return the loss of a mixture's answers; None when the fit is close enough."""


class FitTargets:
    """The targets of a fit: queries, their values, and the noise of each value."""

    def __init__(
        self,
        queries: QuerySet,
        values: NDArray[np.float64],
        noise: NDArray[np.float64],
        device: torch.device,
        picked: torch.Tensor | None = None,
        *,
        noisy_share: float = 1.0,
    ) -> None:
        """Values are fractions of the rows; `picked` are the queries with a value, if not all have one.

        `noisy_share` is the share of the values that rules do not say are zero.
        """
        self.noisy_share = noisy_share
        self._queries = queries
        self._picked = None if picked is None else picked.to(device)
        self.values = torch.as_tensor(values, dtype=torch.float32, device=device)
        self.noise = torch.as_tensor(noise, dtype=torch.float32, device=device)

    @classmethod
    def of(cls, measurements: Sequence[Measurement], rows: int, device: torch.device) -> Self:
        """Build targets from measurements of the private rows; repeated ones are averaged."""
        averaged, queries = _without_the_unmeasured(merge_repeated(measurements))
        picked = _positions(queries, averaged)
        values = np.concatenate([m.values for m in averaged]) / rows
        noise = np.concatenate([m.noise for m in averaged])
        is_known = np.isfinite(noise)
        if not is_known.all():
            picked, values, noise = picked[is_known], values[is_known], noise[is_known]
        is_whole = torch.equal(picked, torch.arange(queries.size))
        zeros = sum(int(m.zeros.sum()) for m in averaged if m.zeros is not None)
        return cls(
            queries,
            values,
            np.maximum(noise, least_noise(averaged)) / rows,
            device,
            None if is_whole else picked,
            noisy_share=1 - zeros / len(values),
        )

    def answers(self, mixture: ProductMixture) -> torch.Tensor:
        """Return the mixture's answers to the measured queries."""
        return self._pick(self._queries.on_product(mixture))

    def on_relaxed(self, rows: RelaxedRows) -> torch.Tensor:
        """Return the relaxed rows' answers to the measured queries."""
        return self._pick(self._queries.on_relaxed(rows))

    def _pick(self, answers: torch.Tensor) -> torch.Tensor:
        return answers if self._picked is None else answers.index_select(0, self._picked)


class NoiseBand:
    """Squared residuals beyond a band of one standard deviation."""

    def __init__(self, measured: FitTargets, stiffness: float = 1.0) -> None:
        """`stiffness`: share of the measurement noise that a fully fitted generator leaves unfitted."""
        self._measured = measured
        # A fit also follows the noise of every visible cell. So when there is nothing left to learn, its
        # loss is below the truth's by the share of visible cells.
        visible = (measured.values > VISIBLE_IN_A_FIT * measured.noise).float().mean().item()
        # What rules say is zero has no noise to leave.
        noisy = max(0.0, measured.noisy_share - visible)
        self._enough = stiffness * noisy * LOSS_OF_THE_TRUTH
        # The largest of m standard normal values is rarely beyond this.
        self._largest = NormalDist().inv_cdf(1 - 0.005 / len(measured.values))

    def loss(self, answers: torch.Tensor) -> torch.Tensor | None:
        """Return None once the fit is as close as the truth would be, on average and at the worst cell."""
        residuals = ((answers - self._measured.values) / self._measured.noise).abs()
        loss = (residuals - BAND).relu().square().mean()
        if loss.item() <= self._enough and residuals.max().item() <= self._largest:
            return None
        return loss


class AboveThreshold:
    """Mean absolute error of the queries that are off by gamma or more."""

    def __init__(self, measured: FitTargets, gamma: float) -> None:
        self._measured = measured
        self._gamma = gamma

    def loss(self, answers: torch.Tensor) -> torch.Tensor | None:
        """Return the mean of the large errors; None if no query is off by gamma or more."""
        errors = (answers - self._measured.values).abs()
        far = errors.detach() >= self._gamma
        count = int(far.sum())
        return torch.where(far, errors, 0.0).sum() / count if count else None


class MixtureLearner:
    """A generator, and the optimiser that fits it to the measurements."""

    def __init__(
        self,
        generator: Generator,
        job: Job[Plan],
        spec: MixtureSpec,
        *,
        known: Collection[str] = (),
    ) -> None:
        """`known`: attributes that the generator was pretrained on; their start is not overwritten."""
        self.generator = generator.to(job.device)
        self.rows = job.estimated_rows
        self.device = job.device
        self._steps = spec.steps
        self._optimiser = new_optimiser(generator, spec.learning_rate)
        self._known = known
        self._zeros = job.known_zeros
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
        """Return the objective of a fit."""
        return NoiseBand(measured, self.generator.stiffness)

    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Take steps until the objective is met; when they are used up, return to the best of them."""
        if not self._has_started:
            shares = one_way_shares(measurements, self.generator.domain, known=self._known)
            self.generator.start(shares.to(self.device))
            self._has_started = True
        measured = FitTargets.of([*self._zeros, *measurements], self.rows, self.device)
        objective = self.objective(measured)
        best = Best(self.generator)
        for _ in range(self._steps):
            loss = objective.loss(measured.answers(self.generator.fitted()))
            if loss is None:
                return
            best.note(loss.item())
            descend(self.generator, self._optimiser, loss)
        with torch.no_grad():
            last = objective.loss(measured.answers(self.generator.fitted()))
        best.end(0.0 if last is None else last.item())


class Best:
    """The weights of a generator at its smallest loss so far."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._loss = math.inf
        self._weights: dict[str, torch.Tensor] = {}

    def note(self, loss: float) -> None:
        """Save the current weights if their loss is the smallest so far."""
        if loss < self._loss:
            self._loss = loss
            state = self._generator.state_dict()
            self._weights = {name: weight.clone() for name, weight in state.items()}

    def end(self, loss: float) -> None:
        """Restore the best weights if the current loss is larger than theirs."""
        if loss > self._loss:
            self._generator.load_state_dict(self._weights)


def new_optimiser(generator: Generator, learning_rate: float) -> torch.optim.Optimizer:
    """Return Adam with a short memory of squared gradients, which is more stable on a steep loss."""
    return torch.optim.Adam(generator.parameters(), lr=learning_rate, betas=(0.9, 0.99))


def descend(generator: Generator, optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """Take one step."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    generator.constrain()


def one_way_shares(
    measurements: Sequence[Measurement], domain: Domain, *, known: Collection[str] = ()
) -> torch.Tensor:
    """Return the nonzero share of every code, from the least noisy marginal that contains its column.

    The shares of `known` attributes are nan.
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


def _without_the_unmeasured(
    measurements: Sequence[Measurement],
) -> tuple[list[Measurement], QuerySet]:
    """Reduce blocks of which only single queries were measured to those queries, if the block allows it."""
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
    """Return the position of each measured value among the answers of all blocks."""
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
