"""Noisy marginals only: answers with known standard errors, and no rows.

Overlapping marginals are made consistent by generalised least squares. A table over A splits into
orthogonal parts, one for each subset S of A: sum A over the attributes outside S, then subtract the
mean along every attribute of S. Noise of equal variance stays uncorrelated between the parts, so
least squares is a weighted mean for each S alone, with weight 1 / (sigma_A^2 prod sizes(A \\ S)).
A part that was measured itself is prod sizes(S) times as large. Its noise is independent between cells, and
the mean along every attribute is subtracted from it, too: what is left has the variance
sigma_S^2 / prod sizes(S)^2.

A fraction f = c / n_hat has the noise of the count c and that of the number of rows n_hat, where that
is private. To first order (delta method), its variance is
(var(c) + f^2 var(n_hat) - 2 f cov(c, n_hat)) / n_hat^2. Counts that are answered as measured do not
depend on n_hat. Least squares takes n_hat as the measurement of S = (), with weight 1 / var(n_hat), so
that part has the covariance var(n_hat) V / var(n_hat) = V with it, where V is the part's variance. No
other part depends on n_hat, so a cell of A, which gets 1 / prod sizes(A) of it, has the covariance
V / prod sizes(A).

Other blocks of queries are answered as measured. Where a fraction divides by another measured number,
such as that of individuals, that number takes the place of n_hat.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.models.base import Answers
from synth.models.orthogonal_parts import OrthogonalPart, Table, centre, sum_to, weighted_mean
from synth.planning.precision import Names, subsets
from synth.queries import Marginal, MarginalPart, QueryBlock, QuerySet

Coefficients = Mapping[Names, Table]
"""A linear combination of counts: a factor for each cell of some marginals, columns in the schema's order."""


@dataclass(frozen=True)
class NoisyMarginal:
    """Counts of one marginal, one axis per attribute, each with noise of the same scale."""

    attributes: Names
    counts: Table
    sigma: float
    is_part: bool = False
    """Whether these are the values of the marginal's part instead (scrim/spec/workload/parts.py)."""


@dataclass(frozen=True)
class NoisyBlock:
    """Counts of a block of other queries, each with noise of the same scale."""

    name: str
    counts: Table
    sigma: float


@dataclass(frozen=True)
class Estimate:
    """The counts of a block; all of them have the same variance and covariance."""

    counts: Table
    variance: float
    covariance: float
    """Covariance of a count with the number that its fraction divides by."""


@dataclass(frozen=True)
class Combination:
    """A linear combination of counts, and its standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class NoisyMarginals:
    """Measured marginals or parts of them, as measured or made consistent; other blocks as measured."""

    kind: ClassVar[str] = "noisy_marginals"

    rows: int
    rows_sigma: float
    marginals: tuple[NoisyMarginal, ...]
    consistent: bool
    others: tuple[NoisyBlock, ...] = ()

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
            estimate = self._estimate(block)
            values.append(estimate.counts.ravel() / self.rows)
            errors.append(self._fraction_errors(estimate, *self._denominator(block)))
            count_errors.append(np.full(block.size, math.sqrt(estimate.variance)))
        return Answers(np.concatenate(values), np.concatenate(errors), np.concatenate(count_errors))

    def combine(self, coefficients: Coefficients) -> Combination:
        """A linear combination of counts. Its exact standard error includes all covariances."""
        factors = self._factors(coefficients)
        value = sum(float(np.sum(f * self._sources[key].table)) for key, f in factors.items())
        return Combination(value, math.sqrt(self.covariance(coefficients, coefficients)))

    def covariance(self, first: Coefficients, second: Coefficients) -> float:
        """The covariance of two linear combinations of counts."""
        ours, theirs = self._factors(first), self._factors(second)
        return sum(
            self._sources[key].variance * float(np.sum(ours[key] * theirs[key]))
            for key in ours.keys() & theirs.keys()
        )

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
            "are_parts": np.array([m.is_part for m in self.marginals]),
        }
        for i, marginal in enumerate(self.marginals):
            arrays[f"attributes_{i}"] = np.array(marginal.attributes)
            arrays[f"counts_{i}"] = marginal.counts
        arrays["others"] = np.array([each.name for each in self.others], dtype=str)
        arrays["sigmas_of_others"] = np.array([each.sigma for each in self.others])
        for i, other in enumerate(self.others):
            arrays[f"other_{i}"] = other.counts
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the model from the output of `to_arrays`."""
        marginals = tuple(
            NoisyMarginal(
                tuple(arrays[f"attributes_{i}"].tolist()),
                arrays[f"counts_{i}"],
                float(sigma),
                is_part=bool(arrays["are_parts"][i]),
            )
            for i, sigma in enumerate(arrays["sigmas"])
        )
        names = arrays.get("others", np.array([], dtype=str)).tolist()  # older files have none
        others = tuple(
            NoisyBlock(name, arrays[f"other_{i}"], float(arrays["sigmas_of_others"][i]))
            for i, name in enumerate(names)
        )
        rows_sigma, consistent = float(arrays["rows_sigma"]), bool(arrays["consistent"])
        return cls(rows, rows_sigma, marginals, consistent, others)

    def _fraction_errors(self, estimate: Estimate, whole: float, sigma: float) -> Table:
        """Standard errors by the delta method, at the noisy fraction clipped to [0, 1].

        `whole` is what the fractions divide by, and `sigma` its noise.
        """
        share = np.clip(estimate.counts.ravel() / whole, 0, 1)
        of_whole = share**2 * sigma**2 - 2 * share * estimate.covariance
        # The difference may round to less than 0 where a fraction is the whole itself.
        return np.asarray(np.sqrt(np.maximum(estimate.variance + of_whole, 0.0)) / whole)

    def _denominator(self, block: QueryBlock) -> tuple[float, float]:
        """What the fractions of a block divide by, and its noise."""
        if block.whole is None:
            return self.rows, self.rows_sigma
        whole = self._other(block.whole)
        return max(1.0, float(whole.counts[0])), whole.sigma

    @cached_property
    def _sources(self) -> Mapping[Names, OrthogonalPart]:
        """Independent estimates of which every answer is a linear combination."""
        if self.consistent:
            return self._parts
        return {m.attributes: OrthogonalPart(m.counts, m.sigma**2) for m in self.marginals}

    def _factors(self, coefficients: Coefficients) -> dict[Names, Table]:
        """The same linear combination in terms of the sources."""
        found: dict[Names, Table] = {}
        for attributes, given in coefficients.items():
            self._refuse_unmeasured(attributes)
            if self.consistent:
                for part in subsets(attributes):
                    spread = self._cells(set(attributes) - set(part))
                    factors = centre(sum_to(given, attributes, part)) / spread
                    found[part] = found.get(part, 0.0) + factors
            else:
                whole = self._least_noisy(attributes)
                shape = [self.domain.size_of[n] if n in attributes else 1 for n in whole.attributes]
                factors = np.broadcast_to(given.reshape(shape), whole.counts.shape)
                found[whole.attributes] = found.get(whole.attributes, 0.0) + factors
        return found

    def _estimate(self, block: QueryBlock) -> Estimate:
        if isinstance(block, Marginal):
            return self._marginal(block.attributes)
        if not isinstance(block, MarginalPart):
            return self._as_measured(block)
        part = self._parts[block.attributes]
        centred = math.prod(1 - 1 / size for size in block.sizes)
        return Estimate(part.table * block.size, part.variance * block.size**2 * centred, 0.0)

    def _as_measured(self, block: QueryBlock) -> Estimate:
        found = self._other(block)
        if block != block.whole:
            return Estimate(found.counts, found.sigma**2, 0.0)
        # It divides itself and others, so it must be positive.
        return Estimate(np.maximum(found.counts, 1.0), found.sigma**2, found.sigma**2)

    def _other(self, block: QueryBlock) -> NoisyBlock:
        for other in self.others:
            if other.name == block.name:
                return other
        raise SpecError(
            f"{block.name} was not measured; this release answers only what was measured"
        )

    def _marginal(self, attributes: Names) -> Estimate:
        self._refuse_unmeasured(attributes)
        return self._reconstruct(attributes) if self.consistent else self._best_sum(attributes)

    def _refuse_unmeasured(self, attributes: Names) -> None:
        if not any(set(attributes) <= set(m.attributes) for m in self.marginals):
            raise SpecError(
                f"no measured marginal covers ({', '.join(attributes)}); this release answers only "
                "what was measured"
            )

    def _best_sum(self, attributes: Names) -> Estimate:
        """The least noisy measurement that covers the attributes, summed over its other attributes."""
        best = self._least_noisy(attributes)
        counts = sum_to(best.counts, best.attributes, attributes)
        return Estimate(counts, self._variance_of_sum(best, attributes), 0.0)

    def _least_noisy(self, attributes: Names) -> NoisyMarginal:
        covering = [m for m in self.marginals if set(attributes) <= set(m.attributes)]
        return min(covering, key=lambda marginal: self._variance_of_sum(marginal, attributes))

    def _variance_of_sum(self, marginal: NoisyMarginal, kept: Names) -> float:
        return marginal.sigma**2 * self._cells(set(marginal.attributes) - set(kept))

    def _reconstruct(self, attributes: Names) -> Estimate:
        """Sum the parts of all subsets, each spread evenly over the attributes it lacks."""
        total = np.zeros([self.domain.size_of[name] for name in attributes])
        variance = 0.0
        for subset in subsets(attributes):
            part = self._parts[subset]
            spread = self._cells(set(attributes) - set(subset))
            shape = [self.domain.size_of[n] if n in subset else 1 for n in attributes]
            total += part.table.reshape(shape) / spread
            centred = math.prod(1 - 1 / self.domain.size_of[name] for name in subset)
            variance += part.variance * centred / spread**2
        return Estimate(total, variance, self._parts[()].variance / self._cells(set(attributes)))

    @cached_property
    def _parts(self) -> dict[Names, OrthogonalPart]:
        rows = NoisyMarginal((), np.array(float(self.rows)), self.rows_sigma)
        estimates: dict[Names, list[OrthogonalPart]] = {}
        for marginal in (rows, *self.marginals):
            if marginal.is_part:
                cells = marginal.counts.size
                part = OrthogonalPart(
                    centre(marginal.counts) / cells, (marginal.sigma / cells) ** 2
                )
                estimates.setdefault(marginal.attributes, []).append(part)
                continue
            for subset in subsets(marginal.attributes):
                table = centre(sum_to(marginal.counts, marginal.attributes, subset))
                cells = self._cells(set(marginal.attributes) - set(subset))
                part = OrthogonalPart(table, marginal.sigma**2 * cells)
                estimates.setdefault(subset, []).append(part)
        return {subset: weighted_mean(parts) for subset, parts in estimates.items()}

    def _cells(self, attributes: set[str]) -> int:
        return math.prod(self.domain.size_of[name] for name in attributes)
