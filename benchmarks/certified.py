"""How often the certified total variation covers the truth: python -m benchmarks.certified [certifications].

A release is fitted once for each mechanism, and its rows are certified many times, each time with fresh
noise for 2% of its budget. That is valid: given the rows and the estimated number of rows, a bound holds with
its confidence over the noise of `certify` alone. Fits are short, because their accuracy does not matter here.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.acs import COLUMN_SETS, persons
from benchmarks.data import DataSet, adult, adult_reduced, adult_split
from benchmarks.households.sets import SETS, STATE, protection_of
from benchmarks.report import print_table
from scrim.spec.population import Protection
from scrim.spec.quality import Quality
from scrim.spec.release import ReleaseSpec
from scrim.spec.workload import Block
from synth.certified import certify
from synth.journal import MemoryJournal
from synth.models.released import ReleasedModel
from synth.planning.accounting import FundedPlan, fund
from synth.planning.certification import Certification
from synth.privacy.vault import Vault
from synth.queries import compile_blocks
from synth.run import run
from synth.table import Chunk, Table

CERTIFICATIONS = 200
SHARE = 0.02
ROWS = 10_000
NEAR = 0.005
ADD_REMOVE, REPLACE_ONE = Protection(), Protection(relation="replace_one")
PAIRS: Mapping[str, Any] = {"type": "marginals", "k": 2}
HISTOGRAMS: tuple[Mapping[str, Any], ...] = (
    {"name": "mwem", "rounds": 5},
    {"name": "pep", "rounds": 5},
)
"""For tables whose combinations of values fit into a histogram."""
MECHANISMS: tuple[Mapping[str, Any], ...] = (
    {"name": "gem", "rounds": 3},
    {"name": "rap", "rounds": 3},
    {"name": "rap_softmax", "rounds": 3},
    {"name": "relaxed_projection", "steps": 50, "members": 1},
    {"name": "generative_network", "steps": 50, "members": 1},
    {"name": "gem_plus", "rounds": 3},
    {"name": "pgm_em", "rounds": 10},
    {"name": "aim"},
    {"name": "private_gsd", "rows": 1000, "generations": 1000},
    {"name": "dual_query", "rounds": 4, "samples": 3},
    {"name": "fem", "rounds": 3},
    {"name": "query_gan", "rounds": 5},
)
OF_NUMBERS: Mapping[str, Any] = {"name": "rap_plus_plus", "rounds": 2, "rows": 500}
"""Refused for tables of categories alone, such as ADULT; its table has numbers."""
WITH_PUBLIC_ROWS: tuple[Mapping[str, Any], ...] = (
    {"name": "pmw_pub", "rounds": 5},
    {"name": "pep_pub", "rounds": 5},
    {"name": "gem_pub", "rounds": 3},
    {"name": "generative_network_pub", "steps": 50, "members": 1},
)
TWO_LEVEL: tuple[Mapping[str, Any], ...] = (
    {"name": "h_mwem", "rounds": 3},
    {"name": "h_gem", "rounds": 2},
)


@dataclass(frozen=True)
class Certifiable:
    """A private table, what is asked of it, and who is protected."""

    title: str
    table: Table
    rows: int
    """The true number of rows, or of groups."""
    workload: Sequence[Any]
    protection: Protection = ADD_REMOVE
    public: Table | None = None


@dataclass(frozen=True)
class Fitted:
    """A release whose rows are certified again and again."""

    spec: ReleaseSpec
    asked: Certifiable
    funded: FundedPlan
    model: ReleasedModel
    rows: Chunk

    @property
    def certification(self) -> Certification:
        """What is certified."""
        plan = self.funded.plan.certification
        assert plan is not None
        return plan

    def certified(self, times: int) -> list[Quality]:
        """Certify the rows again and again; one door counts the true rows once."""
        door = Vault(
            self.asked.table,
            protection=self.asked.protection,
            budget=times * self.funded.plan.split.certify,
            journal=MemoryJournal(),
        )
        return [
            certify(self.spec, door, self.certification, self.model, self.rows)
            for _ in range(times)
        ]

    def mean_distance(self, rows: int) -> float:
        """The true mean total variation over all items, in shares of that number of rows."""
        items = self.certification.items
        summed = sum(
            float(self.errors(item.blocks, rows).sum()) * item.tables / item.divisor
            for item in items
        )
        return summed / sum(item.tables for item in items)

    def errors(self, blocks: Sequence[Block], rows: int) -> NDArray[np.float64]:
        """The true summed absolute error of each block."""
        queries = compile_blocks(blocks, self.model.schema)
        drawn = queries.count(Table(self.model.schema, [self.rows])) / ROWS
        true = queries.count(self.asked.table) / rows
        return np.array([np.abs(error).sum() for error in queries.split(drawn - true)])


def fit(mechanism: Mapping[str, Any], asked: Certifiable) -> Fitted:
    """Release everything that is asked once, at epsilon 1."""
    spec = ReleaseSpec.model_validate(
        {
            "workload": list(asked.workload),
            "mechanism": mechanism,
            "budget": {"epsilon": 1.0},
            "outputs": {"rows": ROWS, "answers": False, "certify": {"share": SHARE}},
            "expected_rows": asked.rows,
        }
    )
    delta, protection = 1 / asked.rows**2, asked.protection
    shared = None if asked.public is None else asked.public.schema
    funded = fund(spec, asked.table.schema, protection, delta, public=shared)
    done = run(spec, asked.table, protection=protection, delta=delta, public=asked.public)
    assert done.rows is not None
    return Fitted(spec, asked, funded, done.model, done.rows)


def line_of(fitted: Fitted, certifications: int) -> list[object]:
    """How often the bounds cover the truth, and how far they are from it."""
    counted = fitted.model.estimated_rows
    true, stated = (fitted.mean_distance(rows) for rows in (fitted.asked.rows, counted))
    of_columns = fitted.errors(fitted.certification.columns, counted) / 2
    found = fitted.certified(certifications)
    bounds = np.array([each.mean_total_variation for each in found])
    estimates = np.array([each.estimate for each in found])
    column_bounds = np.array([[c.total_variation for c in each.columns] for each in found])
    return [
        f"{fitted.spec.mechanism.name}, {fitted.asked.title}",
        float(true),
        int((bounds >= stated).sum()),
        int((bounds >= true).sum()),
        float((bounds - true).mean()),
        int((np.abs(bounds - true) <= NEAR).sum()),
        float(np.abs(estimates - true).mean()),
        int((column_bounds >= of_columns).sum(axis=0).min()),
        float((column_bounds - of_columns).mean()),
        float(np.mean([each.max_error for each in found])),
    ]


HEADER = [
    "mechanism, table",
    "true mean TV",
    "covers (n_hat)",
    "covers (n)",
    "bound - true",
    f"within {NEAR}",
    "|estimate - true|",
    "columns cover",
    "column bound - true",
    "largest error, bound",
]


def of_pairs(title: str, data: DataSet, **others: Any) -> Certifiable:
    """All two-way marginals of a table."""
    return Certifiable(title, data.table, data.rows, [PAIRS], **others)


def with_public_rows() -> Certifiable:
    """ADULT, of which a tenth is public."""
    private, public = adult_split()
    return of_pairs("ADULT, a tenth public", private, public=public.table)


def persons_with_numbers() -> Certifiable:
    """Persons of the ACS with numbers without bins."""
    data = persons(STATE, COLUMN_SETS["employment"])
    tables = {"type": "marginals", "attributes": [["SEX", "MAR"], ["SCHL", "SEX"]]}
    prefixes = {"type": "prefixes", "count": 100, "seed": 0, "numeric": 1}
    return Certifiable("ACS persons", data.table, data.rows, [tables, prefixes])


def households() -> Certifiable:
    """Households of the ACS, protected as a whole."""
    small = SETS["small"]
    data = small.columns.read(STATE)
    protection = protection_of("household", "add_remove", small.columns.largest)
    return Certifiable("ACS households", data.table, data.groups, [small.workload], protection)


CASES: tuple[tuple[Callable[[], Certifiable], tuple[Mapping[str, Any], ...]], ...] = (
    (lambda: of_pairs("ADULT (reduced)", adult_reduced()), HISTOGRAMS),
    (lambda: of_pairs("ADULT", adult()), MECHANISMS),
    (
        lambda: of_pairs("ADULT, replace_one", adult(), protection=REPLACE_ONE),
        ({"name": "generative_network", "steps": 50, "members": 1},),
    ),
    (with_public_rows, WITH_PUBLIC_ROWS),
    (persons_with_numbers, (OF_NUMBERS,)),
    (households, TWO_LEVEL),
)


def lines(certifications: int) -> Iterator[list[object]]:
    """A line for every mechanism that releases rows."""
    for load, mechanisms in CASES:
        asked = load()
        for mechanism in mechanisms:
            yield line_of(fit(mechanism, asked), certifications)


def main() -> None:
    """Print each line when it is known, and all of them as a table at the end."""
    certifications = int(sys.argv[1]) if len(sys.argv) > 1 else CERTIFICATIONS
    found = []
    for line in lines(certifications):
        print(*line, flush=True)
        found.append(line)
    print_table(
        f"epsilon 1, delta 1/n^2, {SHARE:.0%} to certify, {certifications} times", HEADER, found
    )


if __name__ == "__main__":
    main()
