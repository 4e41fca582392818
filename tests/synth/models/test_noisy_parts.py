"""Noisy answers from measured parts of marginals: least squares, standard errors and covariances."""

from functools import cache

import numpy as np

from scrim.spec.workload import PartBlock
from synth.domain import Domain
from synth.models.noisy_marginals import Coefficients, NoisyMarginal, NoisyMarginals
from synth.queries import Marginal, QuerySet, compile_blocks
from tests.support import coded_schema, coded_table, random_rows

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
DOMAIN = Domain.of(SCHEMA)
ROWS = random_rows(SIZES, 400)
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))
ALL = QuerySet(Marginal.of(n, DOMAIN) for n in (*PAIRS, ("a",), ("b",), ("c",)))
COMBINED: Coefficients = {
    ("a", "b"): np.arange(6.0).reshape(2, 3),
    ("c",): np.array([1.0, 0.0, -2.0, 0.5]),
}
OTHER: Coefficients = {("b", "c"): np.eye(3, 4), ("a",): np.array([0.0, 1.0])}


@cache
def true_values(names: tuple[str, ...]) -> np.ndarray:
    """The values of a part without noise."""
    return compile_blocks([PartBlock(names)], SCHEMA).count(coded_table(SCHEMA, ROWS))


def noisy_parts(
    sigmas: dict[tuple[str, ...], float], rng: np.random.Generator
) -> tuple[NoisyMarginal, ...]:
    """Measured parts, one for each column set."""
    found = []
    for names, sigma in sigmas.items():
        shape = [SIZES[n] for n in names]
        values = true_values(names).reshape(shape)
        found.append(
            NoisyMarginal(names, values + rng.normal(0, sigma, shape), sigma, is_part=True)
        )
    return tuple(found)


PART_SIGMAS: dict[tuple[str, ...], float] = {
    ("a",): 2.0,
    ("b",): 9.0,
    ("c",): 5.0,
    ("a", "b"): 11.0,
    ("a", "c"): 30.0,
    ("b", "c"): 14.0,
}


def test_answers_from_parts_are_the_least_squares_solution() -> None:
    """Against the normal equations over the full histogram, solved densely."""
    marginals = noisy_parts(PART_SIGMAS, np.random.default_rng(7))
    model = NoisyMarginals(397, 6.0, marginals, consistent=True)
    cells = np.indices(DOMAIN.sizes).reshape(3, -1)

    def sums(names: tuple[str, ...]) -> np.ndarray:
        axes = [DOMAIN.names.index(n) for n in names]
        shape = [SIZES[n] for n in names]
        return np.eye(int(np.prod(shape)))[:, np.ravel_multi_index([*cells[axes]], shape)]

    design, target = [np.ones((1, DOMAIN.cells)) / 6.0], [np.array([397 / 6.0])]
    for marginal in marginals:
        matrix = np.eye(1)
        for size in marginal.counts.shape:
            matrix = np.kron(matrix, size * np.eye(size) - 1)
        design.append(matrix @ sums(marginal.attributes) / marginal.sigma)
        target.append(marginal.counts.ravel() / marginal.sigma)
    every = np.concatenate(design)
    solution, *_ = np.linalg.lstsq(every, np.concatenate(target))
    covariance = np.linalg.pinv(every.T @ every)
    found = model.answer(ALL)
    assert found.standard_errors is not None and found.count_standard_errors is not None
    for block, values, errors, count_errors in zip(
        ALL.blocks,
        ALL.split(found.values),
        ALL.split(found.standard_errors),
        ALL.split(found.count_standard_errors),
        strict=True,
    ):
        rows = sums(block.attributes)
        np.testing.assert_allclose(values * 397, rows @ solution, atol=1e-6)
        variances = np.diag(rows @ covariance @ rows.T)
        np.testing.assert_allclose(count_errors, np.sqrt(variances), rtol=1e-6)
        with_rows = rows @ covariance @ every[0] * 6.0
        share = np.clip(values, 0, 1)
        fractions = variances + (share * 6.0) ** 2 - 2 * share * with_rows
        np.testing.assert_allclose(errors * 397, np.sqrt(fractions), rtol=1e-6)


def test_a_model_of_parts_answers_its_parts_and_is_read_back() -> None:
    marginals = noisy_parts(PART_SIGMAS, np.random.default_rng(8))
    model = NoisyMarginals(400, 6.0, marginals, consistent=True)
    parts = compile_blocks([PartBlock(names) for names in PART_SIGMAS], SCHEMA)
    found = model.answer(parts)
    whole = model.answer(QuerySet([Marginal.of(["a", "b"], DOMAIN)])).values.reshape(2, 3) * 400
    expected = 2 * whole - whole.sum(axis=0, keepdims=True)
    expected = 3 * expected - expected.sum(axis=1, keepdims=True)
    values, assumed = parts.split(found.values), parts.split(found.count_standard_errors)
    np.testing.assert_allclose(values[3] * 400, expected.ravel(), atol=1e-8)
    # Half of two and a third of three dimensions of the noise are not of the part.
    np.testing.assert_allclose(assumed[3], 11.0 * np.sqrt(1 / 2 * 2 / 3))
    again = NoisyMarginals.from_arrays(model.to_arrays(), rows=400, schema=SCHEMA)
    assert again.answer(ALL).values.tolist() == model.answer(ALL).values.tolist()


def test_covariances_from_parts_are_those_of_repeated_releases() -> None:
    """With a fixed seed; forgetting what answers share would change each figure by a third."""
    rng = np.random.default_rng(9)
    drawn = []
    for _ in range(4000):
        rows = 400 + round(rng.normal(0, 6.0))
        model = NoisyMarginals(rows, 6.0, noisy_parts(PART_SIGMAS, rng), consistent=True)
        drawn.append([model.combine(each).value for each in (COMBINED, OTHER)])
    expected = np.array(
        [[model.covariance(one, other) for one in (COMBINED, OTHER)] for other in (COMBINED, OTHER)]
    )
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(np.cov(np.transpose(drawn)) / scale, expected / scale, atol=0.1)
