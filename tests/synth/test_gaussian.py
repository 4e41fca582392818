"""Noisy answers: unbiased, consistent, and with correct standard errors."""

import numpy as np
import pytest

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from synth.domain import Domain
from synth.models.noisy_marginals import Coefficients, NoisyMarginal, NoisyMarginals
from synth.queries import Marginal, QuerySet, compile_workload
from synth.run import run
from tests.support import ADD_REMOVE, REPLACE_ONE, coded_schema, coded_table, random_rows, release

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
    sigmas: dict[tuple[str, ...], float] = {("a", "b"): 3.0, ("b", "c"): 1.0, ("a", "c"): 7.0}
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
    assert answers.standard_errors is not None and answers.count_standard_errors is not None
    for block, values, errors, count_errors in zip(
        ALL.blocks,
        ALL.split(answers.values),
        ALL.split(answers.standard_errors),
        ALL.split(answers.count_standard_errors),
        strict=True,
    ):
        axes = [DOMAIN.names.index(n) for n in block.attributes]
        index = np.ravel_multi_index([cells[i] for i in axes], [SIZES[n] for n in block.attributes])
        rows = np.eye(block.size)[:, index]
        np.testing.assert_allclose(values * 400, rows @ solution, atol=1e-6)
        variances = np.diag(rows @ covariance @ rows.T)
        np.testing.assert_allclose(count_errors, np.sqrt(variances), rtol=1e-6)
        # The first target is the number of rows over its scale; solutions are linear in targets.
        with_rows = rows @ covariance @ matrix[0] * 2.0
        fractions = variances + (values * 2.0) ** 2 - 2 * values * with_rows
        np.testing.assert_allclose(errors * 400, np.sqrt(fractions), rtol=1e-6)


def test_a_public_total_is_met_exactly() -> None:
    model = NoisyMarginals(
        400, 0.0, noisy({("a", "b"): 5.0}, np.random.default_rng(1)), consistent=True
    )
    assert model.answer(QuerySet([Marginal.of(["b"], DOMAIN)])).values.sum() == pytest.approx(1.0)


@pytest.mark.statistical
@pytest.mark.parametrize("protection", [ADD_REMOVE, REPLACE_ONE], ids=lambda each: each.relation)
@pytest.mark.parametrize("consistent", [True, False])
def test_standard_errors_are_true(consistent: bool, protection: Protection) -> None:
    """Over many releases, errors divided by their standard error have variance one.

    One cell holds nearly all rows: if the number of rows is private, its fraction is much less
    certain than its count.
    """
    spec = release({"name": "gaussian", "consistent": consistent}, budget={"rho": 0.05})
    table = coded_table(SCHEMA, [[0, 0, 0]] * 2700 + random_rows(SIZES, 300))
    true = compile_workload(spec.workload, SCHEMA).count(table)
    scores = []
    for _ in range(300):
        answers = run(spec, table, protection=protection, delta=1e-9).answers
        assert answers is not None
        assert answers.standard_errors is not None and answers.count_standard_errors is not None
        scores.append(
            [
                (answers.fractions - true / 3000) / answers.standard_errors,
                (answers.counts - true) / answers.count_standard_errors,
            ]
        )
    variance = np.square(scores).mean(axis=0)
    mean = np.mean(scores, axis=0)
    # 104 values in each of four cases, 300 runs: in all, a variance is beyond its limit with chance 8e-8
    # (chi-square with 300 degrees of freedom), and a mean with chance 6e-7.
    assert np.all(np.abs(variance - 1) < 0.6)
    assert np.all(np.abs(mean) < 0.35)


@pytest.mark.statistical
@pytest.mark.parametrize("rows_sigma", [0.0, 30.0])
@pytest.mark.parametrize("consistent", [True, False])
def test_what_counts_share_with_the_number_of_rows_is_taken_into_account(
    consistent: bool, rows_sigma: float
) -> None:
    """With scales at which forgetting the covariance would show: by 0.3 of the variance."""
    rng = np.random.default_rng(3)
    true, asked = np.array([9000.0, 1000.0]), QuerySet([Marginal.of(["a"], DOMAIN)])
    scores = []
    for _ in range(3000):
        marginal = NoisyMarginal(("a",), true + rng.normal(0, 15.0, 2), 15.0)
        rows = 10_000 + round(rng.normal(0, rows_sigma))
        found = NoisyMarginals(rows, rows_sigma, (marginal,), consistent).answer(asked)
        assert found.standard_errors is not None
        scores.append((found.values - true / 10_000) / found.standard_errors)
    # Six standard deviations of the variance.
    assert np.all(np.abs(np.square(scores).mean(axis=0) - 1) < 6 * np.sqrt(2 / 3000))


def test_a_large_fraction_is_less_certain_than_its_count_unless_the_rows_are_public() -> None:
    marginals = (NoisyMarginal(("a",), np.array([360.0, 40.0]), 3.0),)
    asked = QuerySet([Marginal.of(["a"], DOMAIN)])
    for rows_sigma, expected in ((0.0, [3.0, 3.0]), (20.0, [18.2483, 3.6056])):
        found = NoisyMarginals(400, rows_sigma, marginals, consistent=False).answer(asked)
        assert found.standard_errors is not None and found.count_standard_errors is not None
        np.testing.assert_allclose(found.standard_errors * 400, expected, rtol=1e-4)
        np.testing.assert_allclose(found.count_standard_errors, 3.0)


def test_a_fraction_out_of_bounds_is_taken_for_the_nearest_one() -> None:
    marginals = (NoisyMarginal(("a",), np.array([500.0, -100.0]), 3.0),)
    model = NoisyMarginals(400, 20.0, marginals, consistent=False)
    errors = model.answer(QuerySet([Marginal.of(["a"], DOMAIN)])).standard_errors
    assert errors is not None
    np.testing.assert_allclose(errors * 400, [np.hypot(3.0, 20.0), 3.0])


def test_consistency_lowers_the_error() -> None:
    rng = np.random.default_rng(2)
    sigmas: dict[tuple[str, ...], float] = dict.fromkeys(PAIRS, 5.0)
    marginals = noisy(sigmas, rng)
    best, raw = (
        NoisyMarginals(400, 0.0, marginals, consistent=c).answer(ALL) for c in (True, False)
    )
    assert best.standard_errors is not None and raw.standard_errors is not None
    assert best.count_standard_errors is not None and raw.count_standard_errors is not None
    assert np.all(best.standard_errors < raw.standard_errors)
    assert np.all(best.count_standard_errors < raw.count_standard_errors)


def test_what_was_not_measured_is_not_answered() -> None:
    model = NoisyMarginals(
        400, 0.0, noisy({("a", "b"): 5.0}, np.random.default_rng(1)), consistent=True
    )
    with pytest.raises(SpecError, match="no measured marginal covers"):
        model.answer(QuerySet([Marginal.of(["c"], DOMAIN)]))
    with pytest.raises(SpecError, match="noisy answers only"):
        model.sample(3, np.random.default_rng(0))


# Linear combinations ------------------------------------------------------------------------------

COMBINED: Coefficients = {
    ("a", "b"): np.arange(6.0).reshape(2, 3),
    ("c",): np.array([1.0, 0.0, -2.0, 0.5]),
}
OTHER: Coefficients = {("b", "c"): np.eye(3, 4), ("a",): np.array([0.0, 1.0])}


@pytest.mark.parametrize("consistent", [True, False])
def test_a_combination_is_the_sum_of_its_terms(consistent: bool) -> None:
    model = NoisyMarginals(
        400, 2.0, noisy(dict.fromkeys(PAIRS, 5.0), np.random.default_rng(4)), consistent
    )
    value = 0.0
    for names, factors in COMBINED.items():
        answers = model.answer(QuerySet([Marginal.of(names, DOMAIN)]))
        value += float(np.sum(factors.ravel() * answers.values * 400))
    assert model.combine(COMBINED).value == pytest.approx(value)


@pytest.mark.parametrize("consistent", [True, False])
def test_one_cell_alone_has_the_standard_error_of_its_answer(consistent: bool) -> None:
    model = NoisyMarginals(
        400, 2.0, noisy(dict.fromkeys(PAIRS, 5.0), np.random.default_rng(4)), consistent
    )
    for names in (("a", "c"), ("b",)):
        cell = np.zeros([SIZES[n] for n in names])
        cell.flat[1] = 1.0
        answers = model.answer(QuerySet([Marginal.of(names, DOMAIN)]))
        assert answers.count_standard_errors is not None
        found = model.combine({names: cell}).standard_error
        assert found == pytest.approx(answers.count_standard_errors[1])


@pytest.mark.parametrize("consistent", [True, False])
def test_covariances_are_those_of_repeated_releases(consistent: bool) -> None:
    """With a fixed seed. Forgetting the overlap of the marginals would change each figure by a third."""
    rng = np.random.default_rng(5)
    sigmas: dict[tuple[str, ...], float] = {("a", "b"): 3.0, ("b", "c"): 1.0, ("a", "c"): 7.0}
    drawn = []
    for _ in range(4000):
        rows = 400 + round(rng.normal(0, 6.0))
        model = NoisyMarginals(rows, 6.0, noisy(sigmas, rng), consistent)
        drawn.append([model.combine(each).value for each in (COMBINED, OTHER)])
    expected = np.array(
        [[model.covariance(one, other) for one in (COMBINED, OTHER)] for other in (COMBINED, OTHER)]
    )
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    # The standard deviation of each entry is at most sqrt(2 / 4000) = 0.022.
    np.testing.assert_allclose(np.cov(np.transpose(drawn)) / scale, expected / scale, atol=0.1)


def test_sums_agree_across_marginals() -> None:
    model = NoisyMarginals(
        400, 2.0, noisy(dict.fromkeys(PAIRS, 5.0), np.random.default_rng(6)), consistent=True
    )
    difference: Coefficients = {
        ("a", "b"): np.array([[1.0] * 3, [0.0] * 3]),
        ("a", "c"): np.array([[-1.0] * 4, [0.0] * 4]),
    }
    found = model.combine(difference)
    assert abs(found.value) < 1e-9 and found.standard_error < 1e-6


def test_a_combination_of_what_was_not_measured_is_refused() -> None:
    model = NoisyMarginals(
        400, 0.0, noisy({("a", "b"): 5.0}, np.random.default_rng(1)), consistent=True
    )
    with pytest.raises(SpecError, match="no measured marginal covers"):
        model.combine({("c",): np.ones(4)})
