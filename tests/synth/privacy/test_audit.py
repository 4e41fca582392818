"""T6: an alarm, not a proof. Every mechanism runs many times on two neighbouring two-cell tables.

Half of the runs choose the event that distinguishes the tables best, the other half test it. The
guarantee must hold at several deltas at once: Pr[M(P) in S] <= e^epsilon Pr[M(P') in S] + delta.
"""

import math
from typing import Any, get_args

import numpy as np
import pytest
from scipy import stats

from scrim.spec.budget import UNITS_PER_RHO, epsilon_of_units
from scrim.spec.mechanism import MECHANISMS as CATALOGUE
from scrim.spec.population import Protection
from scrim.spec.workload import expand
from synth.door import Certified
from synth.journal import MemoryJournal
from synth.mechanisms import run_mechanism
from synth.mechanisms.base import Job
from synth.planning.planner import planner_of
from synth.planning.spending import Setting
from synth.privacy.vault import Vault
from synth.queries import QuerySet, compile_workload
from tests.support import ADD_REMOVE, REPLACE_ONE, coded_schema, coded_table, domain_of, release
from tests.synth.linked import household, linked_table, two_level_schema
from tests.synth.mechanism_settings import AUDITED

SCHEMA = coded_schema({"canary": 2})
UNITS = UNITS_PER_RHO // 2
DELTAS = (1e-3, 0.01, 0.05, 0.1, 0.2, 0.3)
CONFIDENCE = 1e-8  # per bound; a run makes fewer than 100, so a false alarm is rarer than 1e-6

# The canary is a whole household: both of its individuals, and the column of the household.
LINKED = two_level_schema({}, {"canary": 2}, 2).linked
HOME, HOME_OF_CANARIES = ((), ((0,), (0,))), ((), ((1,), (1,)))
TWO_LEVEL = {mechanism.catalogue_name() for mechanism in CATALOGUE if not mechanism.one_level}
FLIPPED = ("fem",)
"""Its critics judge its own first record, which has the canary's code: they tell the canary from its
absence where the other rows have that code too, and the canary has the other."""
ALARM = dict.fromkeys(("dual_query", "fem", "query_gan"), 1000)
"""The audit must fail a mechanism that claims the budget divided by this number; by default 100. Games
need a larger number: the answer to one draw reveals only a small part of what its price allows."""
# From equal shares the first two move whatever they measure; one step of a network shows most where
# it starts at the shares of the rows with the canary.
PUBLIC_ROWS = {
    **{name: [[0], [1]] for name in ("generative_network_pub", "pmw_pub", "pep_pub")},
    "gem_pub": [[0], [0], [0], [1]],
}
PAIRS = {
    "add_remove": (ADD_REMOVE, [[0]] * 3, [[0]] * 3 + [[1]]),
    "replace_one": (REPLACE_ONE, [[0]] * 4, [[0]] * 3 + [[1]]),
}
FLIPPED_PAIRS = {
    "add_remove": (ADD_REMOVE, [[1]] * 3, [[1]] * 3 + [[0]]),
    "replace_one": (REPLACE_ONE, [[1]] * 4, [[1]] * 3 + [[0]]),
}
LINKED_PAIRS = {
    "add_remove": (household(2), [HOME] * 3, [*[HOME] * 3, HOME_OF_CANARIES]),
    "replace_one": (
        household(2, "replace_one"),
        [HOME] * 4,
        [*[HOME] * 3, HOME_OF_CANARIES],
    ),
}


def outputs(
    mechanism: dict[str, Any], rows: list[Any], protection: Protection, runs: int
) -> np.ndarray:
    """The mechanism's answer about the canary's cell, once for each run."""
    if mechanism["name"] in TWO_LEVEL:
        workload = {"type": "hierarchical", "k": 1, "levels": ["individual"]}
        table = linked_table(LINKED, rows)
    else:
        workload, table = {"type": "marginals", "k": 1}, coded_table(SCHEMA, rows)
    schema, spec = table.schema, release(mechanism, workload=[workload])
    queries = compile_workload(spec.workload, schema)
    vault = Vault(table, protection=protection, budget=runs * UNITS, journal=MemoryJournal())
    rows_of = PUBLIC_ROWS.get(mechanism["name"])
    public = None if rows_of is None else coded_table(SCHEMA, rows_of)
    asked = expand(spec.workload, schema)
    setting = Setting(schema, protection, UNITS, expected_rows=4, asked=asked)
    job = Job(
        door=vault,
        schema=schema,
        domain=domain_of(schema),
        queries=queries,
        candidates=queries,
        estimated_rows=4,
        estimated_rows_sigma=0.0,
        plan=planner_of(spec.mechanism).plan(spec.mechanism, asked, setting),
        progress=lambda done, total: None,
        public=public,
    )
    return np.array(
        [run_mechanism(job, spec.mechanism).answer(queries).values[1] for _ in range(runs)]
    )


def violation(with_canary: np.ndarray, without: np.ndarray, units: int) -> float:
    """How far a confident lower bound exceeds what the guarantee allows; positive is a breach."""
    half = len(with_canary) // 2
    candidates = np.quantile(
        np.concatenate([with_canary[:half], without[:half]]), np.linspace(0.01, 0.99, 99)
    )
    worst = -math.inf
    for delta in DELTAS:
        epsilon = epsilon_of_units(units, delta)
        for p, q in ((with_canary, without), (without, with_canary)):
            for above in (True, False):

                def hits(values: np.ndarray, threshold: float, above: bool = above) -> int:
                    return int(
                        np.count_nonzero(values > threshold if above else values <= threshold)
                    )

                scores = [
                    hits(p[:half], c) - math.exp(epsilon) * hits(q[:half], c) for c in candidates
                ]
                best = float(candidates[int(np.argmax(scores))])
                tested = len(p) - half
                low = stats.beta.ppf(
                    CONFIDENCE, hits(p[half:], best), tested - hits(p[half:], best) + 1
                )
                high = stats.beta.ppf(
                    1 - CONFIDENCE, hits(q[half:], best) + 1, tested - hits(q[half:], best)
                )
                low, high = (0.0 if math.isnan(low) else low), (1.0 if math.isnan(high) else high)
                worst = max(worst, low - math.exp(epsilon) * high - delta)
    return worst


def audit(name: str, pair: str, runs: int) -> None:
    pairs = LINKED_PAIRS if name in TWO_LEVEL else FLIPPED_PAIRS if name in FLIPPED else PAIRS
    protection, without_rows, with_rows = pairs[pair]
    without = outputs(AUDITED[name], without_rows, protection, runs)
    with_canary = outputs(AUDITED[name], with_rows, protection, runs)
    assert violation(with_canary, without, UNITS) <= 0
    # The alarm works: the same runs fail for a mechanism with a small part of the budget.
    assert violation(with_canary, without, UNITS // ALARM.get(name, 100)) > 0


@pytest.mark.audit
@pytest.mark.statistical
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("certified", get_args(Certified))
def test_audit_of_certified_errors(certified: Certified, pair: str) -> None:
    """Released rows like those without the canary: each error grows when the canary comes."""
    protection, *tables = PAIRS[pair]
    asked = release({"name": "gaussian"}, workload=[{"type": "marginals", "k": 1}]).workload
    (block,) = compile_workload(asked, SCHEMA).blocks
    # Two totals that move together, so that the noise of both is needed.
    queries = QuerySet([block, block] if certified != "largest error" else [block])
    released = queries.count(coded_table(SCHEMA, tables[0]))

    def noisy(rows: Any, runs: int) -> np.ndarray:
        budget = runs * UNITS
        vault = Vault(
            coded_table(SCHEMA, rows), protection=protection, budget=budget, journal=MemoryJournal()
        )
        errors = [
            vault.certify(
                queries,
                released,
                released_rows=len(tables[0]),
                rows=len(tables[0]),
                budget=UNITS,
                certified=certified,
            )
            for _ in range(runs)
        ]
        return np.array([sum(error.values) for error in errors])

    without, with_canary = (noisy(rows, 20_000) for rows in tables)
    assert violation(with_canary, without, UNITS) <= 0
    assert violation(with_canary, without, UNITS // 100) > 0


# Under replace-one every mechanism uses the same operations at the same prices, which the gaussian
# one shows; the long suite audits all of them under both relations.
@pytest.mark.audit
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "pair"), [*((name, "add_remove") for name in AUDITED), ("gaussian", "replace_one")]
)
def test_audit(name: str, pair: str) -> None:
    audit(name, pair, 20_000)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", AUDITED)
def test_long_audit(name: str, pair: str) -> None:
    audit(name, pair, 100_000)
