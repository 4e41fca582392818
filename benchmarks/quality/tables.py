"""The tables whose releases are forecast: small samples of the tuning tables, and generated ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from benchmarks.comparison.problem import Comparison, Problem
from benchmarks.data import DataSet, acs_persons, adult, adult_reduced, loans
from benchmarks.judge.sets import JUDGING
from benchmarks.products.sets import named, random_marginals
from scrim.spec.schema import Schema
from synth.table import Table

SAMPLE_SEED = 0
QUICK = ("auto", "relaxed_projection", "gem", "aim", "pgm_em", "private_gsd")
WITH_HISTOGRAM = (*QUICK, "mwem", "gaussian")


@dataclass(frozen=True)
class ForecastSet:
    """A table, its marginals, and the mechanisms that are forecast on it."""

    name: str
    title: str
    load: Callable[[], DataSet]
    marginals: Callable[[DataSet], list[tuple[str, ...]]]
    mechanisms: Sequence[str] = QUICK
    fitted: bool = True
    """Whether the constants of the forecast were fitted on it."""

    @property
    def comparison(self) -> Comparison:
        """What the grid runs."""
        return Comparison(self.name, self.title, tuple(self.mechanisms), self.problem)

    def problem(self) -> Problem:
        """Read or generate the table."""
        data = self.load()
        return Problem(data, named(self.marginals(data)))


def all_of(k: int) -> Callable[[DataSet], list[tuple[str, ...]]]:
    """Every k-way marginal."""
    return lambda data: list(combinations(data.domain.names, k))


def some(count: int) -> Callable[[DataSet], list[tuple[str, ...]]]:
    """A public random choice of three-way marginals."""
    return lambda data: random_marginals(data, count)


def sampled(load: Callable[[], DataSet], rows: int) -> Callable[[], DataSet]:
    """About that many rows, at random."""

    def read() -> DataSet:
        data = load()
        return data.split(min(1.0, rows / data.rows), SAMPLE_SEED)[1]

    return read


def generated(sizes: Sequence[int], rows: int, *, classes: int, seed: int) -> DataSet:
    """Rows of a few latent classes, each with skewed shares of its own in every column."""
    random = np.random.default_rng(seed)
    schema = Schema.model_validate(
        {
            "columns": [
                {
                    "name": f"c{position}",
                    "type": "categorical",
                    "values": [str(code) for code in range(size - 1)],
                    "other": "other",
                    "nullable": False,
                }
                for position, size in enumerate(sizes)
            ]
        }
    )
    member = random.choice(classes, size=rows, p=random.dirichlet(np.ones(classes)))
    codes = {}
    for position, size in enumerate(sizes):
        shares = random.dirichlet(np.full(size, 0.5), size=classes)
        bounds = np.cumsum(shares, axis=1)[member]
        drawn = (random.random((rows, 1)) > bounds).sum(axis=1)
        codes[f"c{position}"] = np.minimum(drawn, size - 1)
    dtypes = {name: np.min_scalar_type(size) for name, size in schema.sizes.items()}
    chunk = {name: column.astype(dtypes[name]) for name, column in codes.items()}
    return DataSet(schema, Table(schema, [chunk]), rows)


FITTED = (
    *(
        ForecastSet(
            f"adult-reduced-{rows}-k{k}",
            f"ADULT (reduced), {rows:,} rows, all {k}-way marginals",
            sampled(adult_reduced, rows),
            all_of(k),
            WITH_HISTOGRAM,
        )
        for rows in (2_000, 12_000)
        for k in (1, 2, 3)
    ),
    ForecastSet("adult-5000-k2", "ADULT, 5,000 rows, all pairs", sampled(adult, 5_000), all_of(2)),
    ForecastSet(
        "loans-5000", "LOANS, 5,000 rows, 64 triples", sampled(loans, 5_000), some(64), ("auto",)
    ),
    ForecastSet(
        "acs-oh-10000",
        "ACS persons of Ohio, 10,000 rows, 64 triples",
        sampled(lambda: acs_persons("OH"), 10_000),
        some(64),
        ("auto", "gem"),
    ),
)
HELD_OUT = (
    ForecastSet(
        "generated-narrow",
        "generated, 6 columns, 3,000 rows, all pairs",
        lambda: generated((2, 3, 4, 6, 9, 12), 3_000, classes=4, seed=1),
        all_of(2),
        WITH_HISTOGRAM,
        fitted=False,
    ),
    ForecastSet(
        "generated-wide",
        "generated, 20 columns, 20,000 rows, 64 triples",
        lambda: generated((2, 2, 3, 4, 5, 7, 8, 10, 16, 24) * 2, 20_000, classes=6, seed=2),
        some(64),
        fitted=False,
    ),
)
JUDGING_SETS = tuple(
    ForecastSet(each.name, each.title, each.load, each.marginals, ("auto",), fitted=False)
    for each in JUDGING
)
"""The tables that judge all of Scrim; nothing is tuned on them, and they are run only by name."""
SETS = (*FITTED, *HELD_OUT, *JUDGING_SETS)
