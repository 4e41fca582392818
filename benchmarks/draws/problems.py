"""Regressions on generated tables with known coefficients, and on samples of ADULT."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import adult_reduced
from benchmarks.draws.regression import Estimate, Floats, linear, logistic
from scrim.spec.schema import Schema

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Regression:
    """Columns of whole numbers, a way to draw them, and a regression on them."""

    sizes: Mapping[str, int]
    draw: Callable[[int, np.random.Generator], Columns]
    design: Callable[[Columns], Floats]
    outcome: str
    fit: Callable[[Floats, Floats], Estimate]
    truth: Callable[[], Floats]
    is_tuned: bool = False
    """Whether the rule was chosen on it."""

    @property
    def schema(self) -> Schema:
        """Whole numbers from 0, each a bin of its own."""
        kept = {"type": "integer", "lower": 0, "bins": {"width": 1}, "nullable": False}
        columns = [{"name": n, "upper": size - 1, **kept} for n, size in self.sizes.items()]
        return Schema.model_validate({"columns": columns})

    def estimate(self, columns: Columns) -> Estimate:
        """The regression on some rows."""
        return self.fit(self.design(columns), columns[self.outcome].astype(float))


def _with_one(*columns: NDArray[Any]) -> Floats:
    return np.column_stack([np.ones(len(columns[0])), *columns]).astype(float)


def _happens(random: np.random.Generator, score: Floats) -> NDArray[np.bool_]:
    return np.asarray(random.random(len(score)) < 1 / (1 + np.exp(-score)))


LOGISTIC = np.array([-1.0, 0.6, 0.5, -0.4, 0.15])
LINEAR = np.array([4.0, 1.0, -0.8, 0.4])
RARE = np.array([-3.4, 0.9, 0.25])
CORRELATED = np.array([-0.5, 0.5, -0.5, 0.3])


def _draw_logistic(rows: int, random: np.random.Generator) -> Columns:
    a = random.random(rows) < 0.4
    b = random.choice(3, rows, p=[0.5, 0.3, 0.2])
    x = random.binomial(7, np.where(a, 0.55, 0.4))
    columns = {"a": a, "b": b, "x": x}
    return {**columns, "y": _happens(random, _design_logistic(columns) @ LOGISTIC)}


def _design_logistic(columns: Columns) -> Floats:
    return _with_one(columns["a"], columns["b"] == 1, columns["b"] == 2, columns["x"])


def _draw_linear(rows: int, random: np.random.Generator) -> Columns:
    a = random.random(rows) < 0.3
    b = random.random(rows) < np.where(a, 0.6, 0.3)
    x = random.binomial(5, np.where(b, 0.6, 0.45))
    score = _design_linear({"a": a, "b": b, "x": x}) @ LINEAR
    # Rounding at random keeps the mean, so the coefficients stay as they are.
    y = np.floor(score + random.triangular(-2, 0, 2, rows) + random.random(rows))
    return {"a": a, "b": b, "x": x, "y": y}


def _design_linear(columns: Columns) -> Floats:
    return _with_one(columns["a"], columns["b"], columns["x"])


def _draw_rare(rows: int, random: np.random.Generator) -> Columns:
    a = random.random(rows) < 0.1
    x = random.binomial(5, 0.4, rows)
    unused = random.integers(4, size=rows)
    y = _happens(random, _design_rare({"a": a, "x": x}) @ RARE)
    return {"a": a, "x": x, "unused": unused, "y": y}


def _design_rare(columns: Columns) -> Floats:
    return _with_one(columns["a"], columns["x"])


def _draw_correlated(rows: int, random: np.random.Generator) -> Columns:
    common = random.normal(size=rows)
    a, b = (common + random.normal(size=rows) > cut for cut in (0.0, 0.5))
    x = np.clip(np.floor(2 + common + random.normal(size=rows)), 0, 4)
    score = _design_correlated({"a": a, "b": b, "x": x}) @ CORRELATED
    return {"a": a, "b": b, "x": x, "y": _happens(random, score)}


def _design_correlated(columns: Columns) -> Floats:
    return _with_one(columns["a"], columns["b"], columns["x"])


ADULT_SIZES = {"sex": 2, "marital-status": 7, "education": 16, "age": 10, "income>50K": 2}
MARRIED, DEGREES = 2, (9, 10, 12, 14)


@cache
def _adult() -> Columns:
    codes = adult_reduced().codes
    return {name: codes[name] for name in ADULT_SIZES}


def _draw_adult(rows: int, random: np.random.Generator) -> Columns:
    chosen = random.integers(len(_adult()["sex"]), size=rows)
    return {name: column[chosen] for name, column in _adult().items()}


def _design_adult(columns: Columns) -> Floats:
    is_married = columns["marital-status"] == MARRIED
    has_degree = np.isin(columns["education"], DEGREES)
    return _with_one(columns["sex"], is_married, has_degree, columns["age"])


def _adult_truth() -> Floats:
    """The coefficients on all of ADULT, of which the private tables are samples."""
    columns = _adult()
    return logistic(_design_adult(columns), columns["income>50K"].astype(float)).coefficients


PROBLEMS: Mapping[str, Regression] = {
    "logistic": Regression(
        {"a": 2, "b": 3, "x": 8, "y": 2},
        _draw_logistic,
        _design_logistic,
        "y",
        logistic,
        lambda: LOGISTIC,
        is_tuned=True,
    ),
    "linear": Regression(
        {"a": 2, "b": 2, "x": 6, "y": 12},
        _draw_linear,
        _design_linear,
        "y",
        linear,
        lambda: LINEAR,
    ),
    "rare": Regression(
        {"a": 2, "x": 6, "unused": 4, "y": 2},
        _draw_rare,
        _design_rare,
        "y",
        logistic,
        lambda: RARE,
    ),
    "correlated": Regression(
        {"a": 2, "b": 2, "x": 5, "y": 2},
        _draw_correlated,
        _design_correlated,
        "y",
        logistic,
        lambda: CORRELATED,
    ),
    "adult": Regression(
        ADULT_SIZES, _draw_adult, _design_adult, "income>50K", logistic, _adult_truth
    ),
}


def available() -> list[str]:
    """The names of the problems whose data are there."""
    folder = Path(os.environ.get("SCRIM_BENCHMARK_DATA", "../shared/data"))
    return [name for name in PROBLEMS if name != "adult" or (folder / "adult-reduced").exists()]
