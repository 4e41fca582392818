"""The tables, what is asked of each, and the mechanisms."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from benchmarks.acs import COLUMN_SETS, TREE_LEAVES, persons
from benchmarks.data import DataSet, acs_persons, adult, adult_reduced, adult_split, loans
from benchmarks.households.sets import SETS as HOUSEHOLDS
from benchmarks.households.sets import protection_of
from benchmarks.judge.tables import coded, credit_default
from benchmarks.products.sets import (
    PUBLIC,
    ROWS,
    all_marginals,
    all_pairs,
    named,
    random_marginals,
)
from benchmarks.quality.coverage import Asked
from benchmarks.quality.tables import sampled
from scrim.spec.workload import GroupSizes, WorkloadItem

MECHANISMS = ("generative_network", "aim", "gem")
WITH_HISTOGRAM = (*MECHANISMS, "mwem")
"""Of tables whose combinations of values fit into a histogram."""
OF_BINS = ("relaxed_projection", "gem")
"""Of ranges and trees that end at edges of bins."""
TWO_LEVEL = ("h_mwem", "h_gem")
PERSONS = 20_000
"""Rows of the tables that are asked for queries other than marginals."""
OTHER_QUERIES: dict[str, dict[str, Any]] = {
    "prefixes": {"type": "prefixes", "count": 500, "seed": 0, "numeric": 1},
    "halfspaces": {"type": "halfspaces", "count": 300, "seed": 0},
    "ranges": {"type": "ranges", "k": 2, "count": 400, "seed": 0},
    "trees": {"type": "binary_tree", "k": 2},
}

Marginals = Callable[[DataSet], list[tuple[str, ...]]]


@dataclass(frozen=True)
class CoveredSet:
    """One table of the benchmark, and what is asked of it."""

    name: str
    load: Callable[[], Asked]
    tuned: bool
    """Whether the constants of error bars were chosen on its rows."""
    mechanisms: Sequence[str] = MECHANISMS


def marginals_of(
    name: str,
    load: Callable[[], DataSet],
    asked: Marginals,
    *,
    tuned: bool,
    mechanisms: Sequence[str] = MECHANISMS,
) -> CoveredSet:
    """Some marginals of a table."""

    def read() -> Asked:
        data = load()
        return Asked(data.table, data.rows, named(asked(data)))

    return CoveredSet(name, read, tuned, mechanisms)


def some_triples(count: int) -> Marginals:
    """A public random choice among those with no more cells than rows."""
    return lambda data: random_marginals(data, count)


def _persons(state: str, *, tuned: bool) -> CoveredSet:
    name = f"acs-{state.lower()}"
    return marginals_of(name, lambda: acs_persons(state), some_triples(48), tuned=tuned)


def _other_queries(state: str, *, tuned: bool) -> Iterator[CoveredSet]:
    """Queries about numbers, with and without bins."""
    for kind, item in OTHER_QUERIES.items():
        name = f"acs-{state.lower()}-{kind}"
        yield CoveredSet(name, _asked_of_persons(state, item, None), tuned, ROWS)
        if kind in ("ranges", "trees"):
            of_bins = _asked_of_persons(state, item, TREE_LEAVES)
            yield CoveredSet(f"{name}-of-bins", of_bins, tuned, OF_BINS)


def _asked_of_persons(state: str, item: dict[str, Any], bins: int | None) -> Callable[[], Asked]:
    def read() -> Asked:
        columns = COLUMN_SETS["employment"]
        data = sampled(lambda: persons(state, columns, bins=bins), PERSONS)()
        asked = TypeAdapter[WorkloadItem](WorkloadItem).validate_python(item)
        return Asked(data.table, data.rows, [asked])

    return read


def _with_public_rows() -> Asked:
    """ADULT, a tenth of the rows public."""
    private, public = adult_split()
    workload = named(random_marginals(private, 32))
    return Asked(private.table, private.rows, workload, public=public.table)


def _households(state: str, *, tuned: bool) -> CoveredSet:
    """Tables of households and of the people in them; whole households are protected."""
    small = HOUSEHOLDS["small"]

    def read() -> Asked:
        data = small.columns.read(state)
        workload: list[WorkloadItem] = [small.workload, GroupSizes(type="group_sizes")]
        protection = protection_of("household", "add_remove", small.columns.largest)
        return Asked(data.table, data.groups, workload, protection)

    return CoveredSet(f"households-{state.lower()}", read, tuned, TWO_LEVEL)


SETS = (
    marginals_of(
        "adult-reduced-pairs", adult_reduced, all_pairs, tuned=True, mechanisms=WITH_HISTOGRAM
    ),
    marginals_of(
        "adult-reduced", adult_reduced, all_marginals, tuned=True, mechanisms=WITH_HISTOGRAM
    ),
    marginals_of("adult", adult, some_triples(32), tuned=True),
    marginals_of("loans", loans, some_triples(32), tuned=True),
    *(_persons(state, tuned=True) for state in ("PA", "OH", "NY")),
    CoveredSet("adult-public", _with_public_rows, True, PUBLIC),
    *_other_queries("OH", tuned=True),
    _households("OH", tuned=True),
    marginals_of("salary", lambda: coded("salary"), some_triples(32), tuned=False),
    marginals_of(
        "nltcs", lambda: coded("nltcs"), some_triples(64), tuned=False, mechanisms=WITH_HISTOGRAM
    ),
    marginals_of("nist-taxi", lambda: coded("nist-taxi"), some_triples(32), tuned=False),
    marginals_of("credit-default", credit_default, some_triples(64), tuned=False),
    *(_persons(state, tuned=False) for state in ("GA", "NC", "RI", "VT")),
    *_other_queries("VT", tuned=False),
    _households("VT", tuned=False),
)
