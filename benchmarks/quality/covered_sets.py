"""The tables, what is asked of each, and the mechanisms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.data import DataSet, acs_persons, adult, adult_reduced, loans
from benchmarks.judge.tables import coded, credit_default
from benchmarks.products.sets import all_marginals, all_pairs, random_marginals

MECHANISMS = ("generative_network", "aim", "gem")
WITH_HISTOGRAM = (*MECHANISMS, "mwem")
"""Of tables whose combinations of values fit into a histogram."""

Asked = Callable[[DataSet], list[tuple[str, ...]]]


@dataclass(frozen=True)
class CoveredSet:
    """One table of the benchmark."""

    name: str
    load: Callable[[], DataSet]
    asked: Asked
    tuned: bool
    """Whether the constants of error bars were chosen on it."""
    mechanisms: Sequence[str] = MECHANISMS


def some_triples(count: int) -> Asked:
    """A public random choice among those with no more cells than rows."""
    return lambda data: random_marginals(data, count)


def _persons(state: str, *, tuned: bool) -> CoveredSet:
    return CoveredSet(f"acs-{state.lower()}", lambda: acs_persons(state), some_triples(48), tuned)


SETS = (
    CoveredSet("adult-reduced-pairs", adult_reduced, all_pairs, True, WITH_HISTOGRAM),
    CoveredSet("adult-reduced", adult_reduced, all_marginals, True, WITH_HISTOGRAM),
    CoveredSet("adult", adult, some_triples(32), True),
    CoveredSet("loans", loans, some_triples(32), True),
    *(_persons(state, tuned=True) for state in ("PA", "OH", "NY")),
    CoveredSet("salary", lambda: coded("salary"), some_triples(32), False),
    CoveredSet("nltcs", lambda: coded("nltcs"), some_triples(64), False, WITH_HISTOGRAM),
    CoveredSet("nist-taxi", lambda: coded("nist-taxi"), some_triples(32), False),
    CoveredSet("credit-default", credit_default, some_triples(64), False),
    *(_persons(state, tuned=False) for state in ("GA", "NC", "RI", "VT")),
)
