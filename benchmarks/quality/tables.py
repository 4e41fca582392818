"""The tables whose releases are forecast: samples of public tables, and generated ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from benchmarks.acs import wide_persons
from benchmarks.comparison.problem import Comparison, Problem
from benchmarks.data import DataSet, acs_persons, adult, adult_fine, adult_reduced, loans
from benchmarks.judge.sets import JUDGING
from benchmarks.products.sets import named, random_marginals
from scrim.spec.schema import Schema
from synth.table import Table

SAMPLE_SEED = 0
DEFAULT = ("auto", "gaussian")
QUICK = (*DEFAULT, "relaxed_projection", "private_gsd", "rap_softmax")
ADAPTIVE = (*QUICK, "gem", "gem_plus", "aim", "pgm_em")
WITH_HISTOGRAM = (*ADAPTIVE, "mwem", "pep")

Load = Callable[[], DataSet]
Marginals = Callable[[DataSet], list[tuple[str, ...]]]


@dataclass(frozen=True)
class ForecastSet:
    """A table, its marginals, and the mechanisms that are forecast on it."""

    name: str
    title: str
    load: Load
    marginals: Marginals
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
        marginals = self.marginals(data)
        # What is not asked about is not released, so it cannot be compared.
        asked = data.keep_columns([name for names in marginals for name in names])
        return Problem(asked, named(marginals))


def all_of(k: int) -> Marginals:
    """Every k-way marginal."""
    return lambda data: list(combinations(data.domain.names, k))


def some(count: int) -> Marginals:
    """A public random choice of three-way marginals."""
    return lambda data: random_marginals(data, count)


def sampled(load: Load, rows: int) -> Load:
    """About that many rows, at random."""

    def read() -> DataSet:
        data = load()
        return data.split(min(1.0, rows / data.rows), SAMPLE_SEED)[1]

    return read


def columns_of(load: Load, count: int, seed: int = SAMPLE_SEED) -> Load:
    """Some columns of a table, by a public random choice."""

    def read() -> DataSet:
        data = load()
        chosen = np.random.default_rng(seed).choice(data.domain.names, count, replace=False)
        return data.keep_columns([str(name) for name in chosen])

    return read


def generated(
    sizes: Sequence[int], rows: int, *, classes: int, seed: int, evenness: float = 0.5
) -> DataSet:
    """Rows of a few latent classes with shares of their own in every column, skewed if evenness is small."""
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
        shares = random.dirichlet(np.full(size, evenness), size=classes)
        bounds = np.cumsum(shares, axis=1)[member]
        drawn = (random.random((rows, 1)) > bounds).sum(axis=1)
        codes[f"c{position}"] = np.minimum(drawn, size - 1)
    dtypes = {name: np.min_scalar_type(size) for name, size in schema.sizes.items()}
    chunk = {name: column.astype(dtypes[name]) for name, column in codes.items()}
    return DataSet(schema, Table(schema, [chunk]), rows)


def samples(
    table: str,
    load: Load,
    asked: Mapping[str, Marginals],
    *,
    rows: Sequence[int],
    mechanisms: Sequence[str],
) -> list[ForecastSet]:
    """Each workload on each number of rows."""
    return [
        ForecastSet(
            f"{table}-{count}-{workload}",
            f"{table}, {count:,} rows, {workload}",
            sampled(load, count),
            marginals,
            mechanisms,
        )
        for count in rows
        for workload, marginals in asked.items()
    ]


def drawn(
    kind: str,
    sizes: Sequence[int],
    *,
    rows: int,
    classes: int,
    evenness: float,
    asked: Mapping[str, Marginals],
    mechanisms: Sequence[str] = ADAPTIVE,
) -> list[ForecastSet]:
    """Each workload on a generated table."""
    load = partial(generated, sizes, rows, classes=classes, seed=len(kind), evenness=evenness)
    name = f"generated-{kind}-{rows}"
    return [
        ForecastSet(
            f"{name}-{workload}", f"{name}, {workload}", load, marginals, mechanisms, fitted=False
        )
        for workload, marginals in asked.items()
    ]


SINGLES, PAIRS, TRIPLES = {"k1": all_of(1)}, {"k2": all_of(2)}, {"k3": all_of(3)}
SOME, FEW = {"64-triples": some(64)}, {"4-triples": some(4)}
EVERY_ORDER = SINGLES | PAIRS | TRIPLES
OHIO, PENNSYLVANIA, NEW_YORK = (partial(acs_persons, state) for state in ("OH", "PA", "NY"))

FITTED = (
    *samples(
        "adult-reduced",
        adult_reduced,
        EVERY_ORDER,
        rows=(2_000, 12_000),
        mechanisms=WITH_HISTOGRAM,
    ),
    *samples("adult-reduced", adult_reduced, TRIPLES, rows=(48_842,), mechanisms=QUICK),
    *samples("adult", adult, PAIRS | SOME, rows=(2_000, 8_000), mechanisms=ADAPTIVE),
    *samples("adult", adult, SINGLES | PAIRS | FEW, rows=(30_000,), mechanisms=QUICK),
    *samples("adult", adult, TRIPLES, rows=(48_842,), mechanisms=DEFAULT),
    *samples("adult-fine", adult_fine, PAIRS | SOME, rows=(8_000, 30_000), mechanisms=QUICK),
    *samples("loans", loans, SINGLES | SOME, rows=(2_000, 8_000), mechanisms=DEFAULT),
    *samples("loans", loans, FEW | SOME, rows=(42_535,), mechanisms=DEFAULT),
    *samples(
        "loans-10-columns", columns_of(loans, 10), PAIRS, rows=(2_000, 8_000), mechanisms=ADAPTIVE
    ),
    *samples(
        "loans-8-columns", columns_of(loans, 8, 1), EVERY_ORDER, rows=(30_000,), mechanisms=QUICK
    ),
    *samples("acs-oh", OHIO, SINGLES | SOME, rows=(2_000, 10_000), mechanisms=QUICK),
    *samples("acs-pa", PENNSYLVANIA, PAIRS, rows=(8_000,), mechanisms=DEFAULT),
    *samples("acs-pa", PENNSYLVANIA, FEW | SOME, rows=(120_000,), mechanisms=DEFAULT),
    *samples("acs-ny", NEW_YORK, SOME, rows=(30_000,), mechanisms=DEFAULT),
    *samples(
        "acs-ny-10-columns",
        columns_of(NEW_YORK, 10),
        EVERY_ORDER,
        rows=(8_000,),
        mechanisms=ADAPTIVE,
    ),
    *samples("acs-wide", partial(wide_persons, "PA"), SINGLES, rows=(30_000,), mechanisms=DEFAULT),
    *samples(
        "acs-wide-10-columns",
        columns_of(partial(wide_persons, "PA"), 10),
        PAIRS | FEW,
        rows=(8_000, 60_000),
        mechanisms=DEFAULT,
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
    *drawn(
        "independent",
        (2, 3, 4, 5, 6, 8, 10, 12),
        rows=8_000,
        classes=1,
        evenness=1.0,
        asked=EVERY_ORDER,
    ),
    *drawn(
        "related", (3, 4, 5, 6, 8, 10), rows=20_000, classes=12, evenness=0.1, asked=EVERY_ORDER
    ),
    *drawn("skewed", (4, 6, 8, 12, 20, 30), rows=8_000, classes=5, evenness=0.1, asked=EVERY_ORDER),
    *drawn(
        "wide",
        (300, 80, 40, 20, 6, 4),
        rows=30_000,
        classes=8,
        evenness=0.3,
        asked=SINGLES | PAIRS,
        mechanisms=QUICK,
    ),
    *drawn("tiny", (2, 3, 4, 5), rows=500, classes=3, evenness=0.5, asked=EVERY_ORDER),
    *drawn(
        "binary",
        (2,) * 14,
        rows=10_000,
        classes=6,
        evenness=0.4,
        asked=PAIRS | TRIPLES,
        mechanisms=QUICK,
    ),
)
JUDGING_SETS = tuple(
    replace(each, fitted=False)
    for table in JUDGING
    for each in (
        *samples(
            f"{table.name}-8-columns",
            columns_of(table.load, 8),
            PAIRS,
            rows=(5_000,),
            mechanisms=("auto", "gaussian", "aim", "private_gsd"),
        ),
        *samples(
            table.name, table.load, {"16-triples": some(16)}, rows=(20_000,), mechanisms=DEFAULT
        ),
    )
)
"""Samples of the tables that judge all of Scrim; nothing is tuned on them, and they are run only by name."""
SETS = (*FITTED, *HELD_OUT, *JUDGING_SETS)
