"""What `auto` chooses is near the best that was measured, on the tables of the benchmark.

The test fails if a new result calls for another choice, or if the ranking gets worse.
"""

from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from benchmarks.comparison.outcomes import read
from benchmarks.data import DataSet
from benchmarks.products.sets import random_marginals
from scrim.spec.mechanism import Gaussian, PublicDataSpec
from scrim.spec.release import AskedRelease
from scrim.spec.schema import Schema
from synth.planning.choice import resolve
from synth.table import Table
from tests.support import REPLACE_ONE, coded_schema

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "products.jsonl"
NEAR = 1.1

ALL = {"type": "marginals", "k": 3}


def sizes(text: str) -> list[int]:
    return [int(size) for size in text.split()]


ADULT = sizes("2 2 5 6 7 9 15 16 42 16 6 10 10")
LOANS = sizes(
    "101 101 101 101 101 101 101 17 27 122 122 62 7 101 122 101 101 101 101 101 101 101 101 101 101 4 "
    "101 101 26 3 8 36 12 6 4 61 5 15 51 72 61 121 145 3 145 4 145"
)
"""The columns of LOANS, without one of 1,001 codes that is in one of the marginals."""


def small_triples(codes: list[int], rows: int) -> list[list[str]]:
    """64 triples with no more cells than rows, as the benchmark asks."""
    schema = coded_schema({f"c{i}": size for i, size in enumerate(codes)})
    return [list(names) for names in random_marginals(DataSet(schema, Table(schema, []), rows), 64)]


PENNSYLVANIA = sizes("2 9 24 5 2 3 5 25 5 3 7 10 13 2 2 2 2 2 2 3 3 5 10 11 5 14 7 9")
SETS: dict[str, tuple[int, list[int], dict[str, Any]]] = {
    "adult-reduced": (48_842, sizes("16 7 15 5 2 2 10"), ALL),
    "adult": (48_813, ADULT, ALL),
    "loans": (42_535, LOANS, {"type": "marginals", "attributes": small_triples(LOANS, 42_535)}),
    "loans-pairs": (42_535, LOANS, {**ALL, "k": 2}),
    "acs-pa": (134_347, PENNSYLVANIA, {**ALL, "count": 512, "seed": 0}),
    "adult-public": (43_944, ADULT, ALL),
}
"""Rows, sizes of the columns, and workload; random triples differ from those of the benchmark."""


def measured(name: str, epsilon: float) -> dict[str, float]:
    """The mean error of each mechanism that releases rows."""
    found: dict[str, list[float]] = defaultdict(list)
    for task, outcome in read(RESULTS).items():
        if (task.comparison, task.epsilon) == (name, epsilon):
            found[task.mechanism].append(outcome.answers.mean)
    return {mechanism: mean(errors) for mechanism, errors in found.items()}


def chosen(name: str, epsilon: float, *, public: bool) -> str:
    rows, codes, item = SETS[name]
    schema: Schema = coded_schema({f"c{i}": size for i, size in enumerate(codes)})
    asked = AskedRelease.model_validate(
        {
            "workload": [item],
            "mechanism": {"name": "auto"},
            "budget": {"epsilon": epsilon},
            "expected_rows": rows,
        }
    )
    found = resolve(asked, schema, REPLACE_ONE, 1 / rows**2, public=schema if public else None)
    return found.release.mechanism.name


@pytest.mark.parametrize(
    ("name", "epsilon", "public", "limit"),
    [
        ("adult-reduced", 1.0, False, NEAR),
        ("adult", 1.0, False, NEAR),
        ("loans", 1.0, False, NEAR),
        ("loans", 0.1, False, NEAR),
        # Of 9.1 million cells a million are measured: the largest error is among the smallest, and the mean
        # error two fifths above that of rounds that measure little beside single columns.
        ("loans-pairs", 1.0, False, 1.4),
        ("acs-pa", 1.0, False, NEAR),
        ("acs-pa", 1.0, True, NEAR),
        ("adult-public", 1.0, True, NEAR),
    ],
)
def test_the_choice_is_near_the_best(name: str, epsilon: float, public: bool, limit: float) -> None:
    errors = measured(name, epsilon)
    without = {Gaussian.catalogue_name()}
    if not public:
        without |= {spec.catalogue_name() for spec in PublicDataSpec.__subclasses__()}
    best = min(error for mechanism, error in errors.items() if mechanism not in without)
    assert errors[chosen(name, epsilon, public=public)] <= limit * best
