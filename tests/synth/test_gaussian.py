"""Noisy answers: unbiased, consistent, and with standard errors that are true."""

import numpy as np
import pytest

from synth.domain import Domain
from synth.models.noisy_marginals import NoisyMarginal, NoisyMarginals
from synth.queries import Marginal, QuerySet, compile_workload
from synth.run import run
from synth.spec.errors import SpecError
from tests.support import ADD_REMOVE, coded_schema, coded_table, random_rows, release

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
DOMAIN = Domain.of(SCHEMA)
ROWS = random_rows(SIZES, 400)
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))
ALL = QuerySet(Marginal.of(n, DOMAIN) for n in (*PAIRS, ("a",), ("b",), ("c",)))


def noisy(
    sigmas: dict[tuple[str, ...], float], rng: np.random.Generator
) -> tuple[NoisyMarginal, ...]:
    table = coded_table(SCHEMA, ROWS)
    return tuple(
        NoisyMarginal(
            names,
            QuerySet([Marginal.of(names, DOMAIN)]).count(table).reshape([SIZES[n] for n in names])
            + rng.normal(0, sigma, [SIZES[n] for n in names]),
            sigma,
        )
        for names, sigma in sigmas.items()
    )


def test_consistent_answers_are_the_least_squares_solution() -> None:
    """Against the normal equations over the full histogram, solved densely."""
    rng = np.random.default_rng(0)
    sigmas = {("a", "b"): 3.0, ("b", "c"): 1.0, ("a", "c"): 7.0}
    marginals = noisy(sigmas, rng)
    model = NoisyMarginals(400, 2.0, marginals, consistent=True)
    cells = np.indices(DOMAIN.sizes).reshape(3, -1)
    design, target = [np.ones((1, DOMAIN.cells)) / 2.0], [np.array([400 / 2.0])]
    for marginal in marginals:
        axes = [DOMAIN.names.index(n) for n in marginal.attributes]
        index = np.ravel_multi_index([cells[i] for i in axes], marginal.counts.shape)
        design.append(np.eye(marginal.counts.size)[:, index] / marginal.sigma)
        target.append(marginal.counts.ravel() / marginal.sigma)
    matrix = np.concatenate(design)
    solution, *_ = np.linalg.lstsq(matrix, np.concatenate(target))
    covariance = np.linalg.pinv(matrix.T @ matrix)
    answers = model.answer(ALL)
    assert answers.standard_errors is not None
    for group, values, errors in zip(
        ALL.groups, ALL.split(answers.values), ALL.split(answers.standard_errors), strict=True
    ):
        axes = [DOMAIN.names.index(n) for n in group.attributes]
        index = np.ravel_multi_index([cells[i] for i in axes], [SIZES[n] for n in group.attributes])
        rows = np.eye(group.size)[:, index]
        np.testing.assert_allclose(values * 400, rows @ solution, atol=1e-6)
        np.testing.assert_allclose(
            errors * 400, np.sqrt(np.diag(rows @ covariance @ rows.T)), rtol=1e-6
        )


def test_a_public_total_is_met_exactly() -> None:
    model = NoisyMarginals(
        400, 0.0, noisy({("a", "b"): 5.0}, np.random.default_rng(1)), consistent=True
    )
    assert model.answer(QuerySet([Marginal.of(["b"], DOMAIN)])).values.sum() == pytest.approx(1.0)


@pytest.mark.statistical
@pytest.mark.parametrize("consistent", [True, False])
def test_standard_errors_are_true(consistent: bool) -> None:
    """Over many releases, errors divided by their standard error have variance one."""
    spec = release({"name": "gaussian", "consistent": consistent}, budget={"rho": 0.05})
    table = coded_table(SCHEMA, ROWS)
    true = compile_workload(spec.workload, SCHEMA).count(table)
    scores = []
    for _ in range(400):
        done = run(spec, table, protection=ADD_REMOVE, delta=1e-9)
        assert done.answers is not None and done.answers.standard_errors is not None
        errors = done.answers.standard_errors * done.model.rows
        scores.append((done.answers.counts - true) / errors)
    variance = np.square(scores).mean(axis=0)
    mean = np.mean(scores, axis=0)
    # 26 cells, 400 runs: six standard deviations are 0.43 for a variance and 0.3 for a mean.
    assert np.all(np.abs(variance - 1) < 0.43)
    assert np.all(np.abs(mean) < 0.3)


def test_consistency_lowers_the_error() -> None:
    rng = np.random.default_rng(2)
    sigmas = dict.fromkeys(PAIRS, 5.0)
    marginals = noisy(sigmas, rng)
    errors = [
        NoisyMarginals(400, 0.0, marginals, consistent=c).answer(ALL).standard_errors
        for c in (True, False)
    ]
    assert errors[0] is not None and errors[1] is not None
    assert np.all(errors[0] < errors[1])


def test_what_was_not_measured_is_not_answered() -> None:
    model = NoisyMarginals(
        400, 0.0, noisy({("a", "b"): 5.0}, np.random.default_rng(1)), consistent=True
    )
    with pytest.raises(SpecError, match="no measured marginal covers"):
        model.answer(QuerySet([Marginal.of(["c"], DOMAIN)]))
    with pytest.raises(SpecError, match="noisy answers only"):
        model.sample(3, np.random.default_rng(0))
