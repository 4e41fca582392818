"""Ways to place bins from noisy counts: python -m benchmarks.placement [--runs N].

Each column of numbers of the sets for tuning gets 32 bins. The noise is that of a release at epsilon 1 that
divides the share among 14 columns; here it is normal and has a seed. The rows keep their true bins, and
values are drawn inside them, so that only the bins and their shapes cause errors.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.numbers import DELTA, EPSILON, adult_raw, contacts, distance
from benchmarks.report import print_table
from scrim.spec.budget import UNITS_PER_RHO, units_of_epsilon
from scrim.spec.columns import IntegerColumn
from scrim.spec.schema import Schema
from synth import binning
from synth.measurements import Measurement
from synth.queries.grid import GridQueries
from synth.table.encoding import attribute_codec

Numbers = NDArray[np.float64]
COLUMNS = 14
Divide = Callable[[Numbers, set[int], int], list[int]]
HALVES: Divide = binning._divided


def equal_masses(masses: Numbers, first: set[int], number: int) -> list[int]:
    """Quantiles; where several fall into one cell, the rest is divided by halves."""
    below = np.concatenate([[0.0], np.cumsum(masses)])
    places = np.searchsorted(below, below[-1] * np.arange(1, number) / number)
    starts = sorted(first | {int(place) for place in np.clip(places, 0, len(masses) - 1)})
    return HALVES(masses, set(starts), number) if len(starts) < number else starts[:number]


@dataclass(frozen=True)
class Way:
    """A way to place bins and to draw values inside them."""

    name: str
    share: float = 0.1
    divide: Divide = HALVES
    has_levels: bool = True
    has_shape: bool = True


WAYS = (
    Way("halves (the product)"),
    Way("equal masses", divide=equal_masses),
    Way("one level", has_levels=False),
    Way("without shapes", has_shape=False),
    Way("equal masses without shapes", divide=equal_masses, has_shape=False),
    Way("2% of the budget", share=0.02),
    Way("5% of the budget", share=0.05),
    Way("20% of the budget", share=0.2),
)


def columns() -> Iterator[tuple[IntegerColumn, Numbers]]:
    """The columns with more values than bins."""
    for data in (adult_raw(), contacts()):
        schema = data.with_bins({"adaptive": 32})
        for column in schema.attributes:
            if isinstance(column, IntegerColumn) and column.awaits_edges:
                yield column, attribute_codec(column).numbers(data.chunk[column.name])


def measured(
    column: IntegerColumn, values: Numbers, way: Way, rng: np.random.Generator
) -> Measurement:
    """The counts of the grid with the noise of a release."""
    grid = GridQueries((column.name,), Schema(columns=[column]))
    counter = GridQueries.counter([grid])
    counter.add({column.name: values})
    (counts,) = counter.totals()
    rho = units_of_epsilon(EPSILON, DELTA) / UNITS_PER_RHO * way.share / COLUMNS
    starts = column.grid.starts
    sigma = ((len(starts) if way.has_levels else 1) / (2 * rho)) ** 0.5
    noisy = np.rint(counts + rng.normal(0, sigma, len(counts)))
    if not way.has_levels:
        finest = noisy[-len(starts[-1]) :]
        sums = [np.add.reduceat(finest, np.searchsorted(starts[-1], level)) for level in starts]
        noisy = np.concatenate(sums)
    return Measurement(grid, noisy.astype(np.int64), sigma)


def error(column: IntegerColumn, values: Numbers, way: Way, rng: np.random.Generator) -> float:
    """The Kolmogorov-Smirnov distance that bins and shapes alone cause."""
    with mock.patch.object(binning, "_divided", way.divide):
        bins = binning.place_bins(
            column, measured(column, values, way, rng), float(len(values)), 60.0
        )
    kept = bins if way.has_shape else bins.model_copy(update={"shape": None})
    codec = attribute_codec(column.with_edges(kept))
    drawn = codec.draw(codec.discretise(codec.from_numbers(values)), rng)
    return distance(values, codec.numbers(drawn))


def main() -> None:
    """Print one line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    found = list(columns())
    lines = []
    for way in WAYS:
        rng = np.random.default_rng(5)
        errors = [[error(c, values, way, rng) for _ in range(runs)] for c, values in found]
        means = np.mean(errors, axis=1)
        lines.append([way.name, float(means.mean()), float(means.max())])
    print_table(
        f"{len(found)} columns, {runs} runs, noise of epsilon {EPSILON:g}",
        ["bins", "mean KS", "worst column"],
        lines,
    )


if __name__ == "__main__":
    main()
