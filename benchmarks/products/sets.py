"""What is compared: private tables, their marginals, and the mechanisms."""

import math
from itertools import combinations

import numpy as np

from benchmarks.comparison.problem import Comparison, Problem
from benchmarks.data import (
    ADULT_PUBLIC_COLUMNS,
    DataSet,
    acs_persons,
    adult,
    adult_fine,
    adult_reduced,
    adult_split,
    loans,
)
from scrim.spec.workload import Marginals

HISTOGRAM = ("mwem", "pep")
WITHOUT_HISTOGRAM = (
    "gaussian",
    "gem",
    "gem_plus",
    "rap",
    "rap_softmax",
    "relaxed_projection",
    "generative_network",
    "pgm_em",
    "aim",
)
ROWS = ("private_gsd", "rap_plus_plus")
"""Mechanisms that search for rows."""
GAMES = ("dual_query", "fem", "query_gan")
PUBLIC = ("generative_network_pub", "pmw_pub", "pep_pub", "gem_pub")
PRIVATE_BASELINE = ("gem", "relaxed_projection", "generative_network")
"""Mechanisms that do not use the public data, for comparison."""

ORDER = 3
MARGINAL_SEED = 0


def all_marginals(data: DataSet) -> list[tuple[str, ...]]:
    """Every 3-way marginal."""
    return list(combinations(data.domain.names, ORDER))


def all_pairs(data: DataSet) -> list[tuple[str, ...]]:
    """Every 2-way marginal."""
    return list(combinations(data.domain.names, 2))


def random_marginals(data: DataSet, count: int) -> list[tuple[str, ...]]:
    """A public random choice among the 3-way marginals with no more cells than the table has rows.

    Chosen as in the papers' code, with seed 0.
    """
    size_of = data.domain.size_of
    small = [
        names
        for names in all_marginals(data)
        if math.prod(size_of[name] for name in names) <= data.rows
    ]
    chosen = np.random.RandomState(MARGINAL_SEED).choice(len(small), count, replace=False)
    return [small[position] for position in chosen]


def named(marginals: list[tuple[str, ...]]) -> list[Marginals]:
    """The workload that asks for these marginals."""
    return [Marginals(type="marginals", attributes=[list(names) for names in marginals])]


def _whole(data: DataSet, public: DataSet | None = None) -> Problem:
    return Problem(data, named(all_marginals(data)), public)


def _pairs(data: DataSet) -> Problem:
    return Problem(data, named(all_pairs(data)))


def _sampled(data: DataSet, count: int, public: DataSet | None = None) -> Problem:
    return Problem(data, named(random_marginals(data, count)), public)


def _adult_with_public_rows() -> Problem:
    private, public = adult_split()
    return _whole(private, public)


def _adult_with_public_columns() -> Problem:
    private, public = adult_split()
    return _whole(private, public.keep_columns(ADULT_PUBLIC_COLUMNS))


def _adult_with_one_sex_public() -> Problem:
    private, public = adult_split()
    return _whole(private, public.keep_rows(public.codes["sex"] == 0))


COMPARISONS = (
    Comparison(
        "adult-reduced",
        "ADULT (reduced), 7 columns, all 35 three-way marginals",
        (*HISTOGRAM, *WITHOUT_HISTOGRAM, *ROWS, *GAMES),
        lambda: _whole(adult_reduced()),
    ),
    Comparison(
        "adult",
        "ADULT, 13 columns, all 286 three-way marginals",
        (*WITHOUT_HISTOGRAM, *ROWS, *GAMES),
        lambda: _whole(adult()),
    ),
    Comparison(
        "adult-fine",
        "ADULT*, 14 columns with finer bins, 64 random three-way marginals",
        WITHOUT_HISTOGRAM,
        lambda: _sampled(adult_fine(), 64),
    ),
    Comparison(
        "loans",
        "LOANS, 48 columns, 64 random three-way marginals",
        (*WITHOUT_HISTOGRAM, *ROWS, *GAMES),
        lambda: _sampled(loans(), 64),
    ),
    Comparison(
        "loans-pairs",
        "LOANS, 48 columns, all 1,128 two-way marginals",
        (*WITHOUT_HISTOGRAM, *ROWS, *GAMES),
        lambda: _pairs(loans()),
    ),
    Comparison(
        "adult-public",
        "ADULT, a tenth of the rows public",
        (*PRIVATE_BASELINE, *PUBLIC),
        _adult_with_public_rows,
    ),
    Comparison(
        "adult-public-columns",
        "ADULT, a tenth of the rows public, with 7 of the 13 columns",
        (*PRIVATE_BASELINE, "gem_pub"),
        _adult_with_public_columns,
    ),
    Comparison(
        "adult-public-one-sex",
        "ADULT, the women among a tenth of the rows public: poor support",
        (*PRIVATE_BASELINE, *PUBLIC),
        _adult_with_one_sex_public,
    ),
    Comparison(
        "acs-pa",
        "ACS 2024 persons of Pennsylvania, 512 random three-way marginals, Ohio public",
        (*WITHOUT_HISTOGRAM, *ROWS, *GAMES, *PUBLIC),
        lambda: _sampled(acs_persons("PA"), 512, acs_persons("OH")),
    ),
    Comparison(
        "acs-ny",
        "ACS 2024 persons of New York, 512 random three-way marginals, Pennsylvania public",
        (*WITHOUT_HISTOGRAM, *PUBLIC),
        lambda: _sampled(acs_persons("NY"), 512, acs_persons("PA")),
    ),
)
