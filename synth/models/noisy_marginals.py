"""Noisy marginals only: answers with known standard errors, and no rows.

Overlapping marginals are made consistent by generalised least squares. A table over A splits into
orthogonal parts, one for each subset S of A: sum A over the attributes outside S, then subtract the
mean along every attribute of S. Noise of equal variance stays uncorrelated between the parts, so
least squares is a weighted mean for each S alone, with weight 1 / (sigma_A^2 prod sizes(A \\ S)).

A fraction f = c / n_hat has the noise of the count c and that of the number of rows n_hat, where that
is private. To first order (delta method), its variance is
(var(c) + f^2 var(n_hat) - 2 f cov(c, n_hat)) / n_hat^2. Counts that are answered as measured do not
depend on n_hat. Least squares takes n_hat as the measurement of S = (), with weight 1 / var(n_hat), so
that part has the covariance var(n_hat) V / var(n_hat) = V with it, where V is the part's variance. No
other part depends on n_hat, so a cell of A, which gets 1 / prod sizes(A) of it, has the covariance
V / prod sizes(A).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.models.base import Answers
from synth.queries import QuerySet

Table = NDArray[np.float64]


@dataclass(frozen=True)
class NoisyMarginal:
    """Counts of one marginal, one axis per attribute, each with noise of the same scale."""

    attributes: tuple[str, ...]
    counts: Table
    sigma: float


@dataclass(frozen=True)
class OrthogonalPart:
    """The least-squares estimate of one orthogonal part, and the variance of its noise."""

    table: Table
    variance: float


@dataclass(frozen=True)
class Estimate:
    """The counts of a marginal; all of its cells have the same variance and covariance."""

    counts: Table
    variance: float
    covariance: float
    """Covariance of a count with the number of rows."""


@dataclass(frozen=True)
class NoisyMarginals:
    """Measured marginals, answered as measured or made consistent."""

    kind: ClassVar[str] = "noisy_marginals"

    rows: int
    rows_sigma: float
    marginals: tuple[NoisyMarginal, ...]
    consistent: bool

    @cached_property
    def domain(self) -> Domain:
        """The attributes that were measured."""
        sizes = {
            name: size
            for marginal in self.marginals
            for name, size in zip(marginal.attributes, marginal.counts.shape, strict=True)
        }
        return Domain(tuple(sizes), tuple(sizes.values()))

    def answer(self, queries: QuerySet) -> Answers:
        """Answers as fractions with standard errors. They are unbiased, so small ones may be negative."""
        values, errors, count_errors = [], [], []
        for block in queries.blocks:
            estimate = self._marginal(block.attributes)
            fractions = estimate.counts.ravel() / self.rows
            values.append(fractions)
            errors.append(self._fraction_errors(fractions, estimate))
            count_errors.append(np.full(block.size, math.sqrt(estimate.variance)))
        return Answers(np.concatenate(values), np.concatenate(errors), np.concatenate(count_errors))

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Raise SpecError: noisy answers are not a distribution."""
        raise SpecError(
            "this release holds noisy answers only; choose a mechanism that releases rows"
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The measurements, which determine everything else."""
        arrays: dict[str, NDArray[Any]] = {
            "consistent": np.array(self.consistent),
            "rows_sigma": np.array(self.rows_sigma),
            "sigmas": np.array([m.sigma for m in self.marginals]),
        }
        for i, marginal in enumerate(self.marginals):
            arrays[f"attributes_{i}"] = np.array(marginal.attributes)
            arrays[f"counts_{i}"] = marginal.counts
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the model from the output of `to_arrays`."""
        marginals = tuple(
            NoisyMarginal(
                tuple(arrays[f"attributes_{i}"].tolist()), arrays[f"counts_{i}"], float(sigma)
            )
            for i, sigma in enumerate(arrays["sigmas"])
        )
        return cls(rows, float(arrays["rows_sigma"]), marginals, bool(arrays["consistent"]))

    def _fraction_errors(self, fractions: Table, estimate: Estimate) -> Table:
        """Standard errors by the delta method, at the noisy fraction clipped to [0, 1]."""
        share = np.clip(fractions, 0, 1)
        of_rows = share**2 * self.rows_sigma**2 - 2 * share * estimate.covariance
        return np.asarray(np.sqrt(estimate.variance + of_rows) / self.rows)

    def _marginal(self, attributes: tuple[str, ...]) -> Estimate:
        if not any(set(attributes) <= set(m.attributes) for m in self.marginals):
            raise SpecError(
                f"no measured marginal covers ({', '.join(attributes)}); this release answers only "
                "what was measured"
            )
        return self._reconstruct(attributes) if self.consistent else self._best_sum(attributes)

    def _best_sum(self, attributes: tuple[str, ...]) -> Estimate:
        """The least noisy measurement that covers the attributes, summed over its other attributes."""
        covering = [m for m in self.marginals if set(attributes) <= set(m.attributes)]
        variances = [
            m.sigma**2 * self._cells(set(m.attributes) - set(attributes)) for m in covering
        ]
        best = int(np.argmin(variances))
        counts = _sum_to(covering[best].counts, covering[best].attributes, attributes)
        return Estimate(counts, variances[best], 0.0)

    def _reconstruct(self, attributes: tuple[str, ...]) -> Estimate:
        """Sum the parts of all subsets, each spread evenly over the attributes it lacks."""
        total = np.zeros([self.domain.size_of[name] for name in attributes])
        variance = 0.0
        for subset in _subsets(attributes):
            part = self._parts[subset]
            spread = self._cells(set(attributes) - set(subset))
            shape = [self.domain.size_of[n] if n in subset else 1 for n in attributes]
            total += part.table.reshape(shape) / spread
            centred = math.prod(1 - 1 / self.domain.size_of[name] for name in subset)
            variance += part.variance * centred / spread**2
        return Estimate(total, variance, self._parts[()].variance / self._cells(set(attributes)))

    @cached_property
    def _parts(self) -> dict[tuple[str, ...], OrthogonalPart]:
        rows = NoisyMarginal((), np.array(float(self.rows)), self.rows_sigma)
        estimates: dict[tuple[str, ...], list[OrthogonalPart]] = {}
        for marginal in (rows, *self.marginals):
            for subset in _subsets(marginal.attributes):
                table = _centre(_sum_to(marginal.counts, marginal.attributes, subset))
                cells = self._cells(set(marginal.attributes) - set(subset))
                part = OrthogonalPart(table, marginal.sigma**2 * cells)
                estimates.setdefault(subset, []).append(part)
        return {subset: _weighted_mean(parts) for subset, parts in estimates.items()}

    def _cells(self, attributes: set[str]) -> int:
        return math.prod(self.domain.size_of[name] for name in attributes)


def _subsets(attributes: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [s for k in range(len(attributes) + 1) for s in combinations(attributes, k)]


def _sum_to(table: Table, attributes: tuple[str, ...], kept: tuple[str, ...]) -> Table:
    return np.asarray(table.sum(axis=tuple(i for i, n in enumerate(attributes) if n not in kept)))


def _centre(table: Table) -> Table:
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _weighted_mean(parts: list[OrthogonalPart]) -> OrthogonalPart:
    exact = [part for part in parts if part.variance == 0]
    if exact:
        return exact[0]
    precision = np.array([1 / part.variance for part in parts])
    mean = sum(p * part.table for p, part in zip(precision, parts, strict=True)) / precision.sum()
    return OrthogonalPart(np.asarray(mean), float(1 / precision.sum()))
