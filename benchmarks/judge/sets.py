"""The tables, what is asked of each, and what a classifier learns from its rows.

Of every table a fifth of the rows is kept for testing. The rest is released, and is the truth that the
release is compared with.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from benchmarks.acs import wide_persons
from benchmarks.comparison.problem import Comparison, Problem
from benchmarks.data import DataSet, acs_persons, adult, adult_reduced, loans
from benchmarks.judge.tables import coded, credit_default
from benchmarks.products.sets import all_marginals, all_pairs, named, random_marginals

TEST_SHARE = 0.2
SPLIT_SEED = 0

COMPETITORS = ("generative_network", "relaxed_projection", "aim", "gem", "gem_plus", "private_gsd")
MECHANISMS = ("auto", *COMPETITORS)
WITH_HISTOGRAM = (*MECHANISMS, "mwem")
"""Of tables whose combinations of values fit into a histogram."""


@dataclass(frozen=True)
class Target:
    """What a classifier learns: whether a column has one of these codes."""

    column: str
    positive: Collection[int]


@dataclass(frozen=True)
class JudgedProblem:
    """What is released, the rows kept for testing, and what is learnt."""

    released: Problem
    test: DataSet
    target: Target

    @property
    def features(self) -> list[str]:
        """The columns that are asked about together with the target, in the schema's order."""
        together = {
            name
            for item in self.released.workload
            for block in item.expand(self.released.private.schema)
            if self.target.column in block.attributes
            for name in block.attributes
        }
        names = self.released.private.domain.names
        return [name for name in names if name in together and name != self.target.column]


Marginals = Callable[[DataSet], list[tuple[str, ...]]]


@dataclass(frozen=True)
class JudgedSet:
    """One table of the benchmark."""

    name: str
    title: str
    load: Callable[[], DataSet]
    marginals: Marginals
    target: Target
    tuned: bool
    """Whether rules or defaults were made on it."""
    mechanisms: Sequence[str] = MECHANISMS

    @property
    def comparison(self) -> Comparison:
        """What the grid runs."""
        return Comparison(self.name, self.title, tuple(self.mechanisms), self.problem)

    def problem(self) -> JudgedProblem:
        """Read the table and divide its rows."""
        training, test = self.load().split(TEST_SHARE, SPLIT_SEED)
        asked = Problem(training, named(self.marginals(training)))
        return JudgedProblem(asked, test, self.target)


def some_triples(count: int) -> Marginals:
    """A public random choice among those with no more cells than rows."""
    return lambda data: random_marginals(data, count)


INCOME = Target("PINCP", range(4, 8))
"""At least 50,000 dollars; the code after these is a blank cell."""
STATES = {
    "PA": "Pennsylvania",
    "OH": "Ohio",
    "NY": "New York",
    "GA": "Georgia",
    "NC": "North Carolina",
    "RI": "Rhode Island",
    "VT": "Vermont",
}


def _persons(state: str, *, tuned: bool) -> JudgedSet:
    return JudgedSet(
        f"acs-{state.lower()}",
        f"ACS 2024 persons of {STATES[state]}, 28 columns, 512 random three-way marginals",
        lambda: acs_persons(state),
        some_triples(512),
        INCOME,
        tuned,
    )


def _wide(state: str, *, tuned: bool) -> JudgedSet:
    return JudgedSet(
        f"wide-{state.lower()}",
        f"ACS 2024 persons of {STATES[state]}, 32 columns with up to 531 codes, all 496 pairs",
        lambda: wide_persons(state),
        all_pairs,
        INCOME,
        tuned,
    )


TUNED = (
    JudgedSet(
        "adult-reduced",
        "ADULT (reduced), 7 columns, all 35 three-way marginals",
        adult_reduced,
        all_marginals,
        Target("income>50K", [1]),
        tuned=True,
        mechanisms=WITH_HISTOGRAM,
    ),
    JudgedSet(
        "adult",
        "ADULT, 13 columns, all 286 three-way marginals",
        adult,
        all_marginals,
        Target("income>50K", [1]),
        tuned=True,
    ),
    JudgedSet(
        "loans",
        "LOANS, 48 columns, 64 random three-way marginals",
        loans,
        some_triples(64),
        Target("loan_status", [3]),
        tuned=True,
    ),
    *(_persons(state, tuned=True) for state in ("PA", "OH", "NY")),
    _wide("PA", tuned=True),
)
JUDGING = (
    JudgedSet(
        "salary",
        "Pay of public employees, 9 columns, 32 random three-way marginals",
        lambda: coded("salary"),
        some_triples(32),
        Target("annual-salary", range(2, 33)),
        tuned=False,
    ),
    JudgedSet(
        "nltcs",
        "National Long Term Care Survey, 16 binary columns, all 560 three-way marginals",
        lambda: coded("nltcs"),
        all_marginals,
        Target("managing money", [1]),
        tuned=False,
        mechanisms=WITH_HISTOGRAM,
    ),
    JudgedSet(
        "nist-taxi",
        "Taxi trips of the NIST challenge, 10 columns, 32 random three-way marginals",
        lambda: coded("nist-taxi"),
        some_triples(32),
        Target("payment_type", [1]),
        tuned=False,
    ),
    JudgedSet(
        "temporal-match2",
        "ACS persons of the NIST temporal challenge, 35 columns with up to 181 codes, all 595 pairs",
        lambda: coded("temporal-match2"),
        all_pairs,
        Target("HINSCAID", [1]),
        tuned=False,
    ),
    JudgedSet(
        "credit-default",
        "Default of credit card clients, 24 columns, 512 random three-way marginals",
        credit_default,
        some_triples(512),
        Target("default.payment.next.month", [1]),
        tuned=False,
    ),
    *(_persons(state, tuned=False) for state in ("GA", "NC", "RI", "VT")),
    _wide("GA", tuned=False),
)
SETS = (*TUNED, *JUDGING)
