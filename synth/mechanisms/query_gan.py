"""QueryGAN: generators are trained only on critics, and their mixture is released.

Paper: the thesis on QueryGAN, algorithm 3.
Algorithm: in round t, draw critics where the mixture of the generators so far is wrong, and take steps of
gradient descent on the game's value for them. The mixture of all generators is released; `certify`
measures its accuracy.
Departures: the thesis's private oracle ODO-1 is not private (docs/privacy.md, section 6). Here the
discriminators are finite, public and closed under negation: the queries, each an exact unit of one layer
(synth/queries/boxes.py), drawn by hedge, or selected and measured (`critic: measured`). The generator's
loss has no private term: the true answer to a drawn critic is a constant and is left out. Generators
are tables of logits, updated by plain online gradient descent. A public rule keeps a few components of
each generator; the critics are drawn against the kept components, which are released.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.mechanism import QueryGan
from synth.measurements import Measurement
from synth.mechanisms.adaptive import SMOOTHED, adaptive_measurements
from synth.mechanisms.base import CPU, Job
from synth.mechanisms.game import Critics, draw_critics
from synth.mechanisms.projection import FitTargets, descend
from synth.models.generators import SoftmaxTable
from synth.models.product import ProductMixture
from synth.planning.query_gan import KEPT_COMPONENTS
from synth.planning.spending import Draws, Plan, Rounds
from synth.queries import QuerySet
from synth.queries.boxes import as_conditions, box_of
from synth.queries.conjunction_products import BinRows, ConjunctionProducts


def run(job: Job[Draws | Rounds], spec: QueryGan) -> ProductMixture:
    """Play all rounds; the generators have equal weights."""
    if isinstance(job.plan, Draws):
        player = GeneratorPlayer(job, spec, turns=len(job.plan.prices))
        play_against_draws(job.with_plan(job.plan), player)
    else:
        player = GeneratorPlayer(job, spec, turns=job.plan.rounds * spec.steps)
        adaptive_measurements(job.with_plan(job.plan), spec, player, noise_power=SMOOTHED)
    return player.released()


def play_against_draws(job: Job[Draws], player: "GeneratorPlayer") -> None:
    """Play all rounds: draw critics and train on them."""
    rounds = len(job.plan.prices)
    past_answers = np.zeros(job.candidates.size)
    for past in range(rounds):
        job.progress(past, rounds)
        critics = draw_critics(job, past_answers, past=past, turn=past)
        past_answers += player.learn_from_draws(critics, drawn=job.plan.per_round)
    job.progress(rounds, rounds)


class GeneratorPlayer:
    """The data player: its current generator, and the components kept from all generators."""

    def __init__(self, job: Job[Plan], spec: QueryGan, *, turns: int) -> None:
        self._job = job
        self._steps = spec.steps
        self._table = SoftmaxTable(job.domain, spec.components).to(job.device)
        # The loss is a mean over components, so the rate is multiplied by their number.
        rate = spec.learning_rate * spec.components
        self._optimiser = torch.optim.SGD(self._table.parameters(), lr=rate)
        self._kept_each = max(1, min(spec.components, KEPT_COMPONENTS // turns))
        self._kept: list[torch.Tensor] = []

    def learn_from_draws(self, critics: Critics, *, drawn: int) -> NDArray[np.float64]:
        """Train on a round's critics, keep new components, and return their answers."""
        if critics:
            value = _Value(self._job, critics, drawn=drawn)
            for _ in range(self._steps):
                descend(self._table, self._optimiser, -value.of(self._table.fitted()))
        return self._take_turn().answer(self._job.candidates).values

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """Return the answers of the mixture so far; before the first turn, those of the initial table."""
        return self.released().answer(queries).values

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Take several turns against all measured critics, which can be reused once measured."""
        measured = FitTargets.of(measurements, self._job.estimated_rows, self._job.device)
        with torch.no_grad():
            total = len(self._kept) * measured.answers(self._mixture())
        for _ in range(self._steps):
            residuals = measured.values - total / max(1, len(self._kept))
            # Residuals within the noise have no weight.
            weights = residuals.sign() * (residuals.abs() - measured.noise).relu()
            weights /= weights.abs().sum().clamp_min(1e-12)
            gained = (weights * measured.answers(self._table.fitted())).sum()
            descend(self._table, self._optimiser, -gained)
            with torch.no_grad():
                total += measured.answers(self._take_turn(self._job.device))

    def released(self) -> ProductMixture:
        """Return the mixture of all kept components."""
        return ProductMixture(self._table.domain, self._mixture().probabilities.cpu())

    def _mixture(self) -> ProductMixture:
        with torch.no_grad():
            kept = torch.cat(self._kept) if self._kept else self._table()
        return ProductMixture(self._table.domain, kept)

    def _take_turn(self, device: torch.device = CPU) -> ProductMixture:
        """Keep the next few components of the generator, in cyclic order, and return them."""
        with torch.no_grad():
            probabilities = self._table()
        first = len(self._kept) * self._kept_each
        chosen = torch.arange(first, first + self._kept_each) % len(probabilities)
        self._kept.append(probabilities[chosen.to(probabilities.device)])
        return ProductMixture(self._table.domain, self._kept[-1].to(device))


class _Value:
    """The game's value for drawn critics: the weighted mean of their answers."""

    def __init__(self, job: Job[Plan], critics: Critics, *, drawn: int) -> None:
        columns = job.schema.attributes
        boxes = [box_of(job.candidates, query, job.schema) for query in critics]
        conditions = as_conditions(boxes, columns)
        self._products = ConjunctionProducts(conditions)
        self._rows = BinRows(conditions, columns)
        weights = np.fromiter(critics.values(), float)
        self._weights = torch.as_tensor(weights / drawn, dtype=torch.float32, device=job.device)

    def of(self, mixture: ProductMixture) -> torch.Tensor:
        """Return the weighted mean of the critics' answers on a mixture."""
        answers = self._products.answers(self._rows.probabilities(mixture))
        return (self._weights * answers).sum()
