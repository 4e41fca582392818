"""How often the certified total variation covers the truth: python -m benchmarks.certified [certifications].

A release is fitted once for each mechanism, and its rows are certified many times, each time with fresh
noise for 2% of its budget. That is valid: given the rows and the estimated number of rows, a bound holds with
its confidence over the noise of `certify` alone. Fits are short, because their accuracy does not matter here.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import ADULT_PUBLIC_COLUMNS, DataSet, adult, adult_reduced, adult_split
from benchmarks.report import print_table
from scrim.spec.population import Protection
from scrim.spec.quality import Quality
from scrim.spec.release import ReleaseSpec
from scrim.spec.workload import Block, MarginalBlock
from synth.certified import certify
from synth.journal import MemoryJournal
from synth.models.released import ReleasedModel
from synth.planning.accounting import FundedPlan, fund
from synth.privacy.vault import Vault
from synth.queries import compile_blocks
from synth.run import run
from synth.table import Chunk, Table

CERTIFICATIONS = 200
SHARE = 0.02
ROWS = 50_000
NEAR = 0.005
ADD_REMOVE, REPLACE_ONE = Protection(), Protection(relation="replace_one")
MECHANISMS: tuple[Mapping[str, Any], ...] = (
    {"name": "mwem", "rounds": 5},
    {"name": "pep", "rounds": 5},
    {"name": "gem", "rounds": 5},
    {"name": "rap", "rounds": 3},
    {"name": "rap_softmax", "rounds": 3},
    {"name": "relaxed_projection"},
    {"name": "generative_network"},
    {"name": "gem_plus", "rounds": 5},
    {"name": "pgm_em"},
    {"name": "aim"},
    {"name": "private_gsd", "rows": 1000, "generations": 1000},
    {"name": "rap_plus_plus", "rounds": 2, "rows": 500},
    {"name": "dual_query", "rounds": 4, "samples": 3},
    {"name": "fem", "rounds": 3},
    {"name": "query_gan", "rounds": 5},
    {"name": "pmw_pub", "rounds": 5},
    {"name": "pep_pub", "rounds": 5},
    {"name": "gem_pub", "rounds": 3},
)


@dataclass(frozen=True)
class Fitted:
    """A release whose rows are certified again and again."""

    spec: ReleaseSpec
    data: DataSet
    protection: Protection
    funded: FundedPlan
    model: ReleasedModel
    rows: Chunk

    def certified(self, times: int) -> list[Quality]:
        """Certify the rows again and again; one door counts the true rows once."""
        plan = self.funded.plan
        assert plan.certification is not None
        door = Vault(
            self.data.table,
            protection=self.protection,
            budget=times * plan.split.certify,
            journal=MemoryJournal(),
        )
        return [
            certify(self.spec, door, plan.certification, self.model, self.rows)
            for _ in range(times)
        ]

    def distances(self, blocks: Sequence[Block], rows: int) -> NDArray[np.float64]:
        """The true total-variation distance of every marginal, in shares of that number of rows."""
        queries = compile_blocks(blocks, self.data.schema)
        drawn = queries.count(Table(self.data.schema, [self.rows])) / ROWS
        true = queries.count(self.data.table) / rows
        return np.array([np.abs(error).sum() / 2 for error in queries.split(drawn - true)])


def fit(
    mechanism: Mapping[str, Any],
    data: DataSet,
    protection: Protection,
    *,
    public: DataSet | None = None,
) -> Fitted:
    """Release all two-way marginals once, at epsilon 1."""
    spec = ReleaseSpec.model_validate(
        {
            "workload": [{"type": "marginals", "k": 2}],
            "mechanism": mechanism,
            "budget": {"epsilon": 1.0},
            "outputs": {"rows": ROWS, "answers": False, "certify": {"share": SHARE}},
        }
    )
    delta = 1 / data.rows**2
    shared = None if public is None else public.schema
    funded = fund(spec, data.schema, protection, delta, public=shared)
    table = None if public is None else public.table
    done = run(spec, data.table, protection=protection, delta=delta, public=table)
    assert done.rows is not None
    return Fitted(spec, data, protection, funded, done.model, done.rows)


def line_of(fitted: Fitted, certifications: int) -> list[object]:
    """How often the bounds cover the truth, and how far they are from it."""
    true_rows, stated_rows = fitted.data.rows, fitted.model.estimated_rows
    asked = fitted.funded.plan.asked
    true, stated = (fitted.distances(asked, rows).mean() for rows in (true_rows, stated_rows))
    columns = [MarginalBlock((name,)) for name in fitted.data.schema.sizes]
    of_columns = fitted.distances(columns, stated_rows)
    found = fitted.certified(certifications)
    bounds = np.array([each.mean_total_variation for each in found])
    estimates = np.array([each.estimate for each in found])
    column_bounds = np.array([[c.total_variation for c in each.columns] for each in found])
    return [
        f"{fitted.spec.mechanism.name}, {fitted.protection.relation}",
        float(true),
        int((bounds >= stated).sum()),
        int((bounds >= true).sum()),
        float((bounds - true).mean()),
        int((bounds - true <= NEAR).sum()),
        float(np.abs(estimates - true).mean()),
        int((column_bounds >= of_columns).sum(axis=0).min()),
        float((column_bounds - of_columns).mean()),
        float(np.mean([each.max_error for each in found])),
    ]


HEADER = [
    "mechanism, relation",
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


def main() -> None:
    """Print one line for each mechanism on ADULT (reduced), and two for ADULT."""
    certifications = int(sys.argv[1]) if len(sys.argv) > 1 else CERTIFICATIONS
    reduced, public = adult_reduced(), adult_split()[1].keep_columns(ADULT_PUBLIC_COLUMNS)
    lines = []
    for mechanism in MECHANISMS:
        data, extra = reduced, None
        if mechanism["name"].endswith("_pub"):
            data, extra = adult_split()[0].keep_columns(ADULT_PUBLIC_COLUMNS), public
        lines.append(line_of(fit(mechanism, data, ADD_REMOVE, public=extra), certifications))
        print(*lines[-1], flush=True)
    title = f"all two-way marginals, epsilon 1, delta 1/n^2, {SHARE:.0%} to certify, {certifications} times"
    print_table(f"ADULT (reduced): {title}", HEADER, lines)
    lines = [
        line_of(fit({"name": "generative_network"}, adult(), protection), certifications)
        for protection in (ADD_REMOVE, REPLACE_ONE)
    ]
    print_table(f"ADULT: {title}", HEADER, lines)


if __name__ == "__main__":
    main()
