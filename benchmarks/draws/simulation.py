"""One simulated release: draw a private table, release it with further sets of rows, estimate."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.draws.problems import Regression
from benchmarks.draws.regression import Drawn, Floats
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from synth.run import FinishedRelease, run
from synth.table import Table

DELTA = 1e-9
SAME_MODEL = 3
"""How often more rows are drawn from the released model, for comparison."""


@dataclass(frozen=True)
class Simulated:
    """The estimates of a release, and what they estimate."""

    drawn: Drawn
    truth: Floats
    """The coefficients of the population."""
    of_table: Floats
    """Those of the private table."""
    all_pairs: bool
    """Whether all pairs of columns were measured together."""


def simulate(
    problem: Regression,
    mechanism: Mapping[str, Any],
    *,
    epsilon: float,
    rows: int,
    released: int,
    draws: int,
    seed: int,
) -> Simulated:
    """Release all two-way marginals of a new private table."""
    schema = problem.schema
    private = problem.draw(rows, np.random.default_rng(seed))
    chunk = {name: private[name].astype(np.uint8) for name in schema.names}
    spec = ReleaseSpec.model_validate(
        {
            "workload": [{"type": "marginals", "k": 2}],
            "mechanism": mechanism,
            "budget": {"epsilon": epsilon},
            "outputs": {"rows": released, "answers": False, "draws": draws},
            "expected_rows": rows,
        }
    )
    done = run(spec, Table(schema, [chunk]), protection=Protection(), delta=DELTA, seed=seed)
    assert done.rows is not None and done.redraws is not None
    drawn = Drawn(
        problem.estimate(done.rows),
        [problem.estimate(each) for each in done.redraws],
        [problem.estimate(done.model.sample(released, seed + i)) for i in range(1, SAME_MODEL + 1)],
        released / done.model.estimated_rows,
    )
    table = problem.estimate(chunk).coefficients
    return Simulated(drawn, problem.truth(), table, _measures_all_pairs(done))


def _measures_all_pairs(done: FinishedRelease) -> bool:
    measured = {
        frozenset(pair)
        for measurement in done.measurements
        for pair in combinations(measurement.block.attributes, 2)
    }
    pairs = combinations(done.model.schema.names, 2)
    return all(frozenset(pair) in measured for pair in pairs)
