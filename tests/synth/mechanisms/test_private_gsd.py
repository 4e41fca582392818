"""Private-GSD: how it uses measurements, and rows from both of its modes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scrim.spec.mechanism import PrivateGsd
from scrim.spec.workload import Halfspaces, MarginalBlock, Marginals, Prefixes, WorkloadItem
from synth.domain import Domain
from synth.journal import MemoryJournal
from synth.measurements import EXACT, Measurement
from synth.mechanisms.base import Job
from synth.mechanisms.private_gsd import RowsLearner, combine, run
from synth.models.rows import Rows
from synth.planning.spending import OneShot, Rounds
from synth.privacy.vault import Vault
from synth.queries import Marginal, QuerySet, Single, compile_workload
from synth.table import Table
from tests.support import ADD_REMOVE, coded_schema, coded_table
from tests.synth.genetic.problems import SCHEMA, Floats, chunk_of, random_rows

DOMAIN = Domain(("a", "b"), (2, 3))
A, AB = Marginal.of(("a",), DOMAIN), Marginal.of(("a", "b"), DOMAIN)
ROWS = 1000


class TestCombine:
    def test_repeated_measurements_count_by_their_precision(self) -> None:
        queries, values, noise = combine(
            [
                Measurement(A, np.array([100, 900]), 1.0),
                Measurement(AB, np.arange(6), 3.0),
                Measurement(A, np.array([200, 800]), 2.0),
            ],
            ROWS,
        )
        assert queries.blocks == (A, AB)
        np.testing.assert_allclose(values[:2] * ROWS, [120, 880])
        np.testing.assert_allclose(values[2:] * ROWS, np.arange(6))
        np.testing.assert_allclose(noise[:2] * ROWS, (1 + 1 / 4) ** -0.5)
        np.testing.assert_allclose(noise[2:] * ROWS, 3)

    def test_single_cells_leave_the_others_unmeasured(self) -> None:
        queries, values, noise = combine(
            [Measurement(Single(AB, 4), np.array([70]), 2.0), Measurement(A, np.ones(2), 1.0)], ROWS
        )
        assert queries.blocks == (AB, A)
        assert np.isinf(noise).tolist() == [True] * 4 + [False] + [True] + [False] * 2
        assert values[4] * ROWS == pytest.approx(70)
        assert np.isfinite(values).all()

    def test_a_cell_and_its_marginal_are_averaged_too(self) -> None:
        _, values, noise = combine(
            [
                Measurement(Single(A, 1), np.array([200]), 1.0),
                Measurement(A, np.array([50, 100]), 1.0),
            ],
            ROWS,
        )
        np.testing.assert_allclose(values * ROWS, [50, 150])
        np.testing.assert_allclose(noise * ROWS, [1, 0.5**0.5])

    def test_a_public_count_outweighs_all_others(self) -> None:
        _, values, noise = combine(
            [
                Measurement(A, np.array([10, 20]), 0.0),
                Measurement(A, np.array([90, 80]), 5.0),
            ],
            ROWS,
        )
        np.testing.assert_allclose(values * ROWS, [10, 20], atol=1e-4)
        np.testing.assert_allclose(noise * ROWS, EXACT, rtol=1e-3)


TABLE_ROWS = 3000
WORKLOADS: dict[str, list[WorkloadItem]] = {
    "marginals": [Marginals(type="marginals", k=2)],
    "predicates": [
        Prefixes(type="prefixes", count=100, seed=1, categorical=1, numeric=1),
        Halfspaces(type="halfspaces", count=100, seed=1),
    ],
    "both": [
        Marginals(type="marginals", k=1),
        Prefixes(type="prefixes", count=100, seed=1, categorical=1, numeric=1),
    ],
}
ADAPTIVE = Rounds(
    public=(),
    opened=tuple(MarginalBlock((name,)) for name in ("colour", "sex", "age", "children")),
    opening=10**12,
    rounds=8,
    per_round=3,
    select=10**13,
    measure=10**13,
)


def release(
    workload: str, plan: OneShot | Rounds, **changes: Any
) -> tuple[Rows, Floats, list[tuple[int, int]]]:
    """Rows, their errors, and the reports on the way; the noise is a few rows at most."""
    rows = random_rows(TABLE_ROWS, np.random.default_rng(9))
    rows[:, 1] = rows[:, 3] > 3
    table = Table(SCHEMA, [chunk_of(rows)])
    queries = compile_workload(WORKLOADS[workload], SCHEMA)
    reports: list[tuple[int, int]] = []
    job = Job(
        door=Vault(table, protection=ADD_REMOVE, budget=10**15, journal=MemoryJournal()),
        schema=SCHEMA,
        domain=Domain.of(SCHEMA),
        queries=queries,
        candidates=queries,
        estimated_rows=TABLE_ROWS,
        estimated_rows_sigma=0.0,
        plan=plan,
        progress=lambda *report: reports.append(report),
    )
    spec = PrivateGsd(name="private_gsd", rows=400, **changes)
    found = run(job, spec)
    errors = np.abs(found.answer(queries).values - queries.count(table) / TABLE_ROWS)
    return found, errors, reports


class TestRun:
    """Every limit is at least seven standard deviations (over runs) away from the mean: 1e-11 by chance."""

    @pytest.mark.random
    @pytest.mark.parametrize("workload", WORKLOADS)
    def test_everything_measured_once(self, workload: str) -> None:
        blocks = compile_workload(WORKLOADS[workload], SCHEMA).blocks
        found, errors, reports = release(
            workload, OneShot(measure=(10**13,) * len(blocks)), mode="one_shot"
        )
        assert found.size == 400
        assert errors.max() < 0.02
        assert reports[0] == (0, 200_000) and reports[-1] == (200_000, 200_000)

    @pytest.mark.random
    @pytest.mark.parametrize("workload", WORKLOADS)
    @pytest.mark.parametrize("select", ["marginals", "queries"])
    def test_round_by_round(self, workload: str, select: str) -> None:
        found, errors, reports = release(workload, ADAPTIVE, select=select)
        assert found.size == 400
        assert errors.max() < 0.15
        assert reports == [(finished, 8) for finished in range(9)]

    @pytest.mark.random
    def test_rounds_make_it_better(self) -> None:
        few, many = (
            release("predicates", replace(ADAPTIVE, rounds=rounds))[1].max() for rounds in (1, 20)
        )
        assert many < few / 2

    def test_it_is_the_same_when_it_is_repeated_from_the_same_measurements(self) -> None:
        measurements = [Measurement(A, np.array([100, 900]), 1.0)]
        schema = coded_schema({"a": 2, "b": 3})
        job = Job(
            door=Vault(
                coded_table(schema, [[0, 0]]),
                protection=ADD_REMOVE,
                budget=1,
                journal=MemoryJournal(),
            ),
            schema=schema,
            domain=DOMAIN,
            queries=QuerySet([A]),
            candidates=QuerySet([A]),
            estimated_rows=ROWS,
            estimated_rows_sigma=0.0,
            plan=ADAPTIVE,
            progress=lambda done, total: None,
        )
        tables = []
        for _ in range(2):
            learner = RowsLearner(job, PrivateGsd(name="private_gsd", rows=50))
            learner.update(measurements, measurements)
            tables.append(learner.released().chunk)
        for name in ("a", "b"):
            np.testing.assert_array_equal(tables[0][name], tables[1][name])
        np.testing.assert_allclose(learner.answer(QuerySet([A])), [0.1, 0.9])
