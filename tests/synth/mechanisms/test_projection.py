"""What the product family fits to, and when a fit is close enough."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from scrim.spec.mechanism import RelaxedProjection
from synth.domain import Domain
from synth.measurements import Measurement
from synth.mechanisms.projection import (
    AboveThreshold,
    FitTargets,
    MixtureLearner,
    NoiseBand,
    Objective,
    one_way_shares,
)
from synth.models.generators import SoftmaxTable
from synth.queries import Marginal, QueryBlock, QuerySet, Single

CPU = torch.device("cpu")
DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))
ROWS = 1000
SIGMA = 0.01


def marginal(*names: str) -> Marginal:
    return Marginal.of(names, DOMAIN)


def measured(values: NDArray[np.float64], sigma: float = SIGMA) -> FitTargets:
    wide = Domain(("wide",), (len(values),))
    queries = QuerySet([Marginal.of(("wide",), wide)])
    return FitTargets(queries, values, np.full(len(values), sigma), CPU)


def noise(cells: int, scale: float) -> torch.Tensor:
    return scale * torch.randn(cells, generator=torch.Generator().manual_seed(1))


class TestNoiseBand:
    def test_what_the_truth_would_leave_is_close_enough(self) -> None:
        target = NoiseBand(measured(np.zeros(2000)))
        assert target.loss(noise(2000, 0.95 * SIGMA)) is None
        assert target.loss(noise(2000, 1.05 * SIGMA)) is not None

    def test_cells_that_can_be_seen_must_be_met_closer_than_noise(self) -> None:
        seen = measured(np.ones(2000))
        assert NoiseBand(seen).loss(1 + noise(2000, 0.95 * SIGMA)) is not None
        assert NoiseBand(seen).loss(torch.full((2000,), 1 + 0.99 * SIGMA)) is None

    def test_a_stiff_generator_must_come_closer(self) -> None:
        answers = noise(2000, 0.95 * SIGMA)
        assert NoiseBand(measured(np.zeros(2000)), 0.5).loss(answers) is not None

    def test_one_cell_far_off_is_not_close_enough_and_alone_pulls(self) -> None:
        answers = torch.full((2000,), 0.9 * SIGMA)
        answers[7] = 8 * SIGMA
        answers.requires_grad_()
        loss = NoiseBand(measured(np.zeros(2000))).loss(answers)
        assert loss is not None
        assert loss.item() == pytest.approx((8 - 1) ** 2 / 2000, rel=1e-4)
        loss.backward()
        assert answers.grad is not None
        assert answers.grad.nonzero().flatten().tolist() == [7]


class TestAboveThreshold:
    def test_the_mean_error_of_those_that_are_off_by_gamma(self) -> None:
        answers = torch.tensor([0.5, -0.25, 0.125, 0.0], requires_grad=True)
        loss = AboveThreshold(measured(np.zeros(4)), gamma=0.25).loss(answers)
        assert loss is not None
        assert loss.item() == pytest.approx((0.5 + 0.25) / 2)
        loss.backward()
        assert answers.grad is not None
        assert answers.grad.tolist() == [0.5, -0.5, 0, 0]

    def test_nothing_is_left_to_do_below_gamma(self) -> None:
        assert AboveThreshold(measured(np.zeros(2)), gamma=0.2).loss(torch.full((2,), 0.1)) is None


def measurement(
    query: QueryBlock | Single, first: float = 0.0, sigma: float = 2.0, step: float = 1.0
) -> Measurement:
    return Measurement(query, first + step * np.arange(query.size), sigma)


class TestMeasured:
    def answers(self, found: FitTargets) -> list[float]:
        with torch.no_grad():
            return found.answers(self.table.fitted()).tolist()

    def expected(self, query: QueryBlock | Single) -> list[float]:
        block = query.block if isinstance(query, Single) else query
        everything = QuerySet([block]).on_product(self.table.released()).tolist()
        return [everything[query.index]] if isinstance(query, Single) else everything

    @pytest.fixture(autouse=True)
    def _table(self) -> None:
        self.table = SoftmaxTable(DOMAIN, 5)

    @pytest.mark.parametrize(
        "queries",
        [
            [marginal("a", "b"), marginal("c")],
            [marginal("c"), marginal("a", "b")],
            [
                Single(marginal("b", "c"), 11),
                Single(marginal("a"), 1),
                Single(marginal("b", "c"), 2),
            ],
            [Single(marginal("b", "c"), 3), marginal("a", "c"), Single(marginal("b", "c"), 0)],
            [Single(marginal("a", "b"), 4), marginal("a", "b")],
        ],
        ids=["groups", "blocks, reversed", "singles", "both", "a cell and its marginal"],
    )
    def test_every_value_stands_beside_its_answer(self, queries: list[QueryBlock | Single]) -> None:
        made = [measurement(q, 100.0 * i, sigma=1.0 + i) for i, q in enumerate(queries)]
        found = FitTargets.of(made, ROWS, CPU)
        np.testing.assert_allclose(
            self.answers(found), np.concatenate([self.expected(q) for q in queries]), rtol=1e-5
        )
        values = np.concatenate([m.values for m in made]) / ROWS
        np.testing.assert_allclose(found.values.numpy(), values, rtol=1e-6)
        sigmas = np.concatenate([np.full(m.query.size, m.sigma) for m in made]) / ROWS
        np.testing.assert_allclose(found.noise.numpy(), sigmas, rtol=1e-6)

    def test_repeated_measurements_count_by_their_precision(self) -> None:
        cell = Single(marginal("a"), 1)
        made = [
            measurement(cell, 100.0, sigma=1.0),
            measurement(marginal("c"), sigma=1.0),
            measurement(cell, 200.0, sigma=2.0),
        ]
        found = FitTargets.of(made, ROWS, CPU)
        assert len(found.values) == len(self.answers(found)) == 1 + 4
        assert found.values[0].item() == pytest.approx((100 + 200 / 4) / (1 + 1 / 4) / ROWS)
        assert found.noise[0].item() == pytest.approx((1 + 1 / 4) ** -0.5 / ROWS)

    def test_a_public_count_is_met_almost_exactly(self) -> None:
        found = FitTargets.of([measurement(marginal("a"), sigma=0.0)], ROWS, CPU)
        assert found.noise.tolist() == pytest.approx([1e-3 / ROWS] * 2)
        assert NoiseBand(found).loss(found.values + 0.01 / ROWS) is not None


class TestOneWayShares:
    def shares(self, *made: Measurement, known: tuple[str, ...] = ()) -> list[list[float]]:
        shares = one_way_shares(made, DOMAIN, known=known)
        return [block.tolist() for block in torch.split(shares, list(DOMAIN.sizes))]

    def test_the_least_noisy_marginal_tells(self) -> None:
        direct = Measurement(marginal("a"), np.array([10.0, 90.0]), 3.0)
        pair = Measurement(marginal("a", "b"), np.array([10.0, 20, 20, 20, 20, 10]), 1.0)
        # Summed over three cells each, the pair's noise is sqrt(3).
        assert self.shares(direct, pair)[0] == pytest.approx([0.5, 0.5])
        assert self.shares(pair, direct)[0] == pytest.approx([0.5, 0.5])
        closer = Measurement(marginal("a"), np.array([10.0, 90.0]), 1.5)
        assert self.shares(pair, closer)[0] == pytest.approx([0.1, 0.9])

    def test_the_sums_are_those_of_the_attribute(self) -> None:
        pair = Measurement(marginal("b", "c"), np.arange(12.0), 0.1)
        found = self.shares(pair)
        assert found[1] == pytest.approx([6 / 66, 22 / 66, 38 / 66])
        assert found[2] == pytest.approx([12 / 66, 15 / 66, 18 / 66, 21 / 66])

    @pytest.mark.parametrize("sigma", [0.0, 5.0])
    def test_no_share_is_zero(self, sigma: float) -> None:
        made = Measurement(marginal("b"), np.array([-20.0, 0.0, 100.0]), sigma)
        shares = self.shares(made)[1]
        assert min(shares) > 0 and sum(shares) == pytest.approx(1)

    def test_known_attributes_have_none_and_untold_ones_are_uniform(self) -> None:
        made = [
            Measurement(marginal("a"), np.array([10.0, 90.0]), 1.0),
            Measurement(Single(marginal("c"), 1), np.array([90.0]), 1.0),
        ]
        found = self.shares(*made, known=("a",))
        assert np.isnan(found[0]).all()
        assert found[1] == pytest.approx([1 / 3] * 3)
        assert found[2] == pytest.approx([1 / 4] * 4)


class Scripted:
    """Given losses, with a nonzero gradient."""

    def __init__(self, losses: list[float], generator: SoftmaxTable) -> None:
        self._losses = iter(losses)
        self._generator = generator
        self.weights: list[torch.Tensor] = []

    def loss(self, answers: torch.Tensor) -> torch.Tensor:
        self.weights.append(weights_of(self._generator))
        return next(self._losses) + answers[0] - answers[0].detach()


def weights_of(generator: SoftmaxTable) -> torch.Tensor:
    return torch.cat([w.detach().clone().flatten() for w in generator.parameters()])


class ScriptedLearner(MixtureLearner):
    script: Scripted

    def objective(self, measured: FitTargets) -> Objective:
        return self.script


@pytest.mark.parametrize(
    ("losses", "best"),
    [
        pytest.param([5.0, 1.0, 2.0, 190.0], 1, id="it ends in a stumble"),
        pytest.param([5.0, 2.0, 1.0, 0.5], 3, id="it ends at its best"),
    ],
)
def test_a_fit_returns_to_its_best_step(losses: list[float], best: int) -> None:
    table = SoftmaxTable(DOMAIN, 2)
    job: Any = SimpleNamespace(estimated_rows=ROWS, device=CPU, known_zeros=[])
    spec = RelaxedProjection(name="relaxed_projection", steps=3, learning_rate=0.5)
    learner = ScriptedLearner(table, job, spec)
    learner.script = Scripted(losses, table)
    learner.fit([Measurement(marginal("a", "b"), np.array([300, 0, 200, 100, 0, 400]), SIGMA)])
    assert len({tuple(w.tolist()) for w in learner.script.weights}) == 4
    assert torch.equal(weights_of(table), learner.script.weights[best])
