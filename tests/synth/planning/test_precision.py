"""The variance of answers in closed form, against dense least squares."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from synth.planning import precision
from synth.planning.precision import Measurable, Names, count_parts, design_of, subsets

SIZES = {"a": 2, "b": 3, "c": 4, "one": 1}
PAIRS: list[Names] = list(combinations("abc", 2))
CELLS = np.indices(tuple(SIZES.values())).reshape(len(SIZES), -1)


def sums(names: Names) -> NDArray[np.float64]:
    """The matrix that sums the full table to a marginal."""
    axes = [list(SIZES).index(name) for name in names]
    shape = [SIZES[name] for name in names]
    index = np.ravel_multi_index([CELLS[i] for i in axes], shape) if names else CELLS[0] * 0
    return np.eye(math.prod(shape))[:, index]


@pytest.mark.parametrize("rows", [1e4, 0.3])
@pytest.mark.parametrize("l2_squared", [1, 2])
def test_variances_are_those_of_dense_least_squares(rows: float, l2_squared: int) -> None:
    measured: list[Names] = [("a", "b"), ("b", "c"), ("a", "b", "c"), ("b",), ("a", "one")]
    shares = [0.3, 0.1, 0.05, 0.35, 0.2]
    asked: list[Names] = [*PAIRS, ("a",), ("b",), ("a", "b", "c"), ("one",), ("c", "one")]
    design = design_of(
        asked, [Measurable(m, l2_squared) for m in measured], SIZES, rows=rows, consistent=True
    )
    information = rows * np.ones((CELLS.shape[1],) * 2)
    for names, share in zip(measured, shares, strict=True):
        information += share / l2_squared * sums(names).T @ sums(names)
    covariance = np.linalg.pinv(information, rcond=1e-14, hermitian=True)
    found = design.variances(design.precisions(shares))
    for names, variance in zip(asked, found, strict=True):
        dense = np.diag(sums(names) @ covariance @ sums(names).T)
        np.testing.assert_allclose(dense, variance, rtol=1e-5, atol=1e-8)


def parts(names: Names) -> NDArray[np.float64]:
    """The matrix that computes the part of a marginal from the full table."""
    matrix: NDArray[np.float64] = np.eye(1)
    for name in names:
        size = SIZES[name]
        centred = size * np.eye(size) - np.ones((size, size))
        matrix = np.asarray(np.kron(matrix, centred), dtype=np.float64)
    return matrix @ sums(names)


def test_variances_from_parts_are_those_of_dense_least_squares() -> None:
    measured = [part for part in subsets(("a", "b", "c")) if part]
    shares = [0.1, 0.2, 0.05, 0.3, 0.15, 0.1, 0.1]
    asked: list[Names] = [*PAIRS, ("a",), ("a", "b", "c"), ("c", "one")]
    design = design_of(
        asked,
        [Measurable(names, 7, is_part=True) for names in measured],
        SIZES,
        rows=0.3,
        consistent=True,
    )
    information = 0.3 * np.ones((CELLS.shape[1],) * 2)
    for names, share in zip(measured, shares, strict=True):
        information += share / 7 * parts(names).T @ parts(names)
    covariance = np.linalg.pinv(information, rcond=1e-14, hermitian=True)
    found = design.variances(design.precisions(shares))
    for names, variance in zip(asked, found, strict=True):
        dense = np.diag(sums(names) @ covariance @ sums(names).T)
        np.testing.assert_allclose(dense, variance, rtol=1e-8)


def test_raw_answers_come_from_the_smallest_marginal_that_contains_them() -> None:
    measured = [Measurable(names, 2) for names in (("a", "b", "c"), ("a", "b"), ("c",))]
    asked: list[Names] = [("a",), ("c",), ("a", "c"), ("a", "b")]
    design = design_of(asked, measured, SIZES, rows=math.inf, consistent=False)
    found = design.variances(design.precisions([0.5, 0.25, 0.25]))
    assert found == pytest.approx([3 * 8, 8, 3 * 4, 8])


def test_too_many_parts_are_answered_as_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def terms() -> int:
        measured = [Measurable(names, 1) for names in PAIRS]
        return design_of(PAIRS, measured, SIZES, rows=1.0, consistent=True).terms

    assert (count_parts(PAIRS), terms()) == (12, 24)
    monkeypatch.setattr(precision, "MAX_PARTS", 11)
    assert terms() == 6


@pytest.mark.parametrize("consistent", [True, False])
def test_what_no_unit_can_change_has_no_variance(consistent: bool) -> None:
    asked: list[Names] = [("one",), ("a",)]
    measured = [Measurable(("one",), 0), Measurable(("a",), 2)]
    design = design_of(asked, measured, SIZES, rows=math.inf, consistent=consistent)
    public, private = design.variances(design.precisions([0.5, 0.5]))
    assert public == 0 and private > 0


def test_subsets_are_in_the_order_of_the_names() -> None:
    assert subsets(("b", "a")) == [(), ("b",), ("a",), ("b", "a")]
