"""The chart of expected errors shows what the population can still pay."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from scrim.spec.budget import Budget, units_of_epsilon
from scrim.spec.release import AskedRelease
from service.console.forecast_chart import LEFT, RIGHT, VIEW_WIDTH, Chart, chart_of
from service.data.ledger.records import LedgerAccount
from service.populations.schemas import BudgetView, PopulationView
from service.releases.preview_schemas import PointView, PreviewView
from synth.planning.choice import resolve
from synth.planning.forecast import forecast
from synth.planning.forecast_budgets import Budgets
from synth.planning.subject import Subject
from tests.support import ADD_REMOVE, coded_schema

SCHEMA = coded_schema({"a": 3, "b": 4, "c": 5})
DELTA = 1e-9
EPSILONS = (0.1, 1.0, 10.0)


def chart(left: float) -> Chart:
    """The chart of a release at epsilon 1, for a population with that epsilon left."""
    account = LedgerAccount(
        population_id=UUID(int=0),
        unit="row",
        relation="add_remove",
        rows_per_unit=1,
        delta_units=10**9,
        cap_units=units_of_epsilon(left, DELTA),
        spent_units=0,
        reserved_units=0,
    )
    body = {
        "workload": [{"type": "marginals", "k": 2}],
        "mechanism": {"name": "mwem"},
        "budget": {"epsilon": 1.0},
    }
    resolved = resolve(AskedRelease.model_validate(body), SCHEMA, ADD_REMOVE, DELTA)
    subject = Subject("rows", SCHEMA, ADD_REMOVE)
    preview = PreviewView.of(
        resolved, forecast(resolved, subject), account, delta=DELTA, warnings=[]
    )
    points = Budgets(resolved, subject, DELTA).curve(EPSILONS)
    curve = [PointView.of(point, 50_000) for point in points]
    population = PopulationView(
        id=UUID(int=0),
        name="people",
        unit="row",
        relation="add_remove",
        max_rows_per_person=None,
        max_household_size=None,
        cap=Budget(epsilon=left),
        delta=DELTA,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        budget=BudgetView.of(account, DELTA, None),
    )
    found = chart_of(preview.model_copy(update={"curve": curve}), population)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("left", "drawn", "label"),
    [(1.0, (LEFT + VIEW_WIDTH - RIGHT) / 2, "1"), (0.01, LEFT, "0.01"), (30.0, None, "30")],
)
def test_the_remaining_budget_is_drawn(left: float, drawn: float | None, label: str) -> None:
    """All of the chart is beyond a budget below its first epsilon, and nothing beyond a large one."""
    found = chart(left)
    assert found.left == (None if drawn is None else pytest.approx(drawn, abs=0.5))
    assert found.left_label == label
    xs = [float(point.split(",")[0]) for point in found.line.split()]
    assert xs == sorted(xs) and (xs[0], xs[-1]) == (LEFT, VIEW_WIDTH - RIGHT)
