"""Differences between measurements and the model's answers, in units of the noise.

Both sides are released: the measurements carry their noise, and the model was fitted to them. The
difference is not the model's error: the true values would differ by about one unit of noise too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.measurements import Measurement
from synth.models.fitted import fitted_counts
from synth.models.released import ReleasedModel
from synth.queries import ConjunctionQueries, QueryBlock, Single

SHOWN = 10
"""Number of the worst residuals that are listed."""
EDGES = np.arange(-4.0, 4.25, 0.5)
"""The edges of the bars of the plot; values beyond have a bar on either side."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Value:
    """One measured count."""

    query: str
    measured: float
    modelled: float
    sigma: float
    residual: float


@dataclass(frozen=True)
class MeasuredResiduals:
    """All counts of one measurement."""

    name: str
    values: int
    sigma: float
    mean_square: float
    largest: float

    @property
    def root_mean_square(self) -> float:
        """Root mean square of the residuals; about 1 for the true values."""
        return float(self.mean_square**0.5)


@dataclass(frozen=True)
class Residuals:
    """How far the model is from its measurements."""

    number: int
    measurements: int
    root_mean_square: float
    within_two: float
    """Share of values within two standard deviations; 0.954 for the true values."""
    largest: float
    largest_of_truth: float
    """The median of the largest residual for the true values."""
    histogram: list[float]
    """Shares between the edges, with one bar more on either side."""
    worst_values: list[Value]
    worst_measurements: list[MeasuredResiduals]


def residuals(model: ReleasedModel, measurements: Sequence[Measurement]) -> Residuals | None:
    """Compare every noisy measurement with the model; None if nothing was measured."""
    noisy = [measurement for measurement in measurements if measurement.sigma > 0]
    if not noisy:
        return None
    modelled = fitted_counts(model.model, model.estimated_rows, noisy)
    standard = [(a - m.values) / m.sigma for a, m in zip(modelled, noisy, strict=True)]
    every = np.concatenate(standard)
    counts = np.histogram(every, [-np.inf, *EDGES, np.inf])[0]
    measured = [
        MeasuredResiduals(
            m.query.name, len(z), m.sigma, float(np.mean(z**2)), float(np.abs(z).max())
        )
        for m, z in zip(noisy, standard, strict=True)
    ]
    return Residuals(
        number=len(every),
        measurements=len(noisy),
        root_mean_square=float(np.sqrt(np.mean(every**2))),
        within_two=float(np.mean(np.abs(every) < 2)),
        largest=float(np.abs(every).max()),
        largest_of_truth=NormalDist().inv_cdf((1 + 0.5 ** (1 / len(every))) / 2),
        histogram=(counts / len(every)).tolist(),
        worst_values=_worst_values(model.schema, noisy, modelled, standard),
        worst_measurements=sorted(measured, key=lambda m: -m.mean_square)[:SHOWN],
    )


def _worst_values(
    schema: Schema,
    measurements: Sequence[Measurement],
    modelled: Sequence[Floats],
    standard: Sequence[Floats],
) -> list[Value]:
    candidates = [
        (abs(float(z[i])), which, int(i))
        for which, z in enumerate(standard)
        for i in np.argsort(-np.abs(z), kind="stable")[:SHOWN]
    ]
    candidates.sort(key=lambda each: (-each[0], *each[1:]))
    return [
        Value(
            query=_label(measurements[which].query, i, schema),
            measured=float(measurements[which].values[i]),
            modelled=float(modelled[which][i]),
            sigma=measurements[which].sigma,
            residual=float(standard[which][i]),
        )
        for _, which, i in candidates[:SHOWN]
    ]


def _label(query: QueryBlock | Single, index: int, schema: Schema) -> str:
    block, wanted = (query.block, query.index) if isinstance(query, Single) else (query, index)
    return next(label for i, label in enumerate(block.labels(schema)) if i == wanted)


def measured_pairs(measurements: Sequence[Measurement]) -> set[frozenset[str]]:
    """The pairs of columns that some measured query covers.

    Halfspaces do not count: they cover all columns at once, and say little about any two of them.
    """
    sets = {names for measurement in measurements for names in _column_sets(measurement.query)}
    return {frozenset(pair) for names in sets for pair in combinations(names, 2)}


def columns_of(measurements: Sequence[Measurement]) -> set[str]:
    """The columns that some measured query covers."""
    blocks = {m.query.block if isinstance(m.query, Single) else m.query for m in measurements}
    return {name for block in blocks for name in block.attributes}


def _column_sets(query: QueryBlock | Single) -> set[tuple[str, ...]]:
    block = query.block if isinstance(query, Single) else query
    if not isinstance(block, ConjunctionQueries):
        return {block.attributes} if block.is_whole else set()
    asked = [block.conjunctions[query.index]] if isinstance(query, Single) else block.conjunctions
    return {tuple(condition.column for condition in conjunction) for conjunction in asked}
