"""How `gaussian` divides its budget, and what the preview says about its answers."""

import math
from typing import Any

import numpy as np
import pytest

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from synth.planning import gaussian
from synth.planning.choice import resolve
from synth.planning.forecast import Forecast, forecast
from synth.planning.plan import ReleasePlan, plan
from synth.planning.spending import OneShot
from synth.planning.subject import Subject
from synth.run import run
from tests.support import ADD_REMOVE, REPLACE_ONE, coded_schema, coded_table, random_rows, release

SIZES = {"a": 2, "b": 3, "c": 4, "d": 6}
SCHEMA = coded_schema(SIZES)
ADULT = dict(zip("abcdefghijklm", (2, 2, 5, 6, 7, 9, 15, 16, 42, 16, 6, 10, 10), strict=True))
PAIRS = {"type": "marginals", "k": 2}
SINGLES = {"type": "marginals", "k": 1}
TRIPLES = {"type": "marginals", "k": 3}


def planned(
    workload: list[dict[str, Any]], protection: Protection = REPLACE_ONE, **parameters: Any
) -> ReleasePlan:
    """By default a plan of whole marginals."""
    spec = release({"name": "gaussian", **parameters}, workload=workload)
    return plan(spec, SCHEMA, protection, 10**12)


def previewed(
    workload: list[dict[str, Any]],
    schema: Schema = SCHEMA,
    protection: Protection = ADD_REMOVE,
    rho: float = 0.5,
    **parameters: Any,
) -> Forecast:
    spec = release({"name": "gaussian", **parameters}, workload=workload, budget={"rho": rho})
    resolved = resolve(spec, schema, protection, spec.budget.units(1e-9))
    return forecast(resolved, Subject("rows", schema, protection))


@pytest.mark.parametrize(
    ("protection", "mean", "largest"),
    # In rows. Equal shares have root mean square errors of 87.0 and 122.5.
    [(ADD_REMOVE, 63.76, 73.04), (REPLACE_ONE, 97.64, 111.63)],
    ids=lambda each: getattr(each, "relation", None),
)
def test_shares_lower_the_error_on_the_columns_of_adult(
    protection: Protection, mean: float, largest: float
) -> None:
    rho = 0.01427034283  # epsilon 1 at delta 1/n^2
    schema = coded_schema(ADULT)

    def sigma(**parameters: Any) -> float | None:
        return previewed([TRIPLES], schema, protection, rho, **parameters).items[0].sigma

    assert sigma() == pytest.approx(mean, rel=1e-3)
    assert sigma(objective="max") == pytest.approx(largest, rel=1e-3)


def test_a_marginal_that_others_determine_is_not_measured() -> None:
    found = planned([PAIRS, SINGLES])
    assert {len(block.attributes) for block in found.asked} == {1, 2}
    assert {block.attributes for block in found.measured} == {
        block.attributes for block in found.asked if len(block.attributes) == 2
    }
    heavy = planned([PAIRS, SINGLES], weights=[1.0, 1000.0])
    assert {len(block.attributes) for block in heavy.measured} == {1, 2}


def test_raw_answers_need_every_measurement() -> None:
    found = planned([PAIRS, SINGLES], consistent=False)
    assert found.measured == list(found.asked)


def test_a_small_weight_never_leaves_a_marginal_out_that_no_other_contains() -> None:
    pair = {"type": "marginals", "attributes": [["a", "b"]]}
    found = planned([pair, SINGLES], weights=[1e6, 1e-6])
    assert {("a", "b"), ("c",), ("d",)} <= {block.attributes for block in found.measured}


def test_named_measurements_are_all_made_with_the_best_shares() -> None:
    names = [["a", "b", "c", "d"], ["a", "b"], ["c"]]
    found = planned([PAIRS], measure=[{"type": "marginals", "attributes": names}])
    assert [list(block.attributes) for block in found.measured] == names
    assert isinstance(found.spending, OneShot)
    assert found.spending.measure[0] > 0.8 * 10**12
    assert sum(found.spending.measure) <= found.split.mechanism


def test_too_large_a_workload_is_measured_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "MAX_PARTS", 1)
    found = planned([PAIRS, SINGLES])
    assert found.measured == list(found.asked)


def test_there_is_one_weight_for_each_item() -> None:
    with pytest.raises(SpecError, match="has 1 weights, but the workload has 2 items"):
        planned([PAIRS, SINGLES], weights=[1.0])
    planned([PAIRS, PAIRS], weights=[1.0, 2.0])


def test_a_weight_lowers_the_error_of_its_item() -> None:
    light, heavy = (
        previewed([PAIRS, TRIPLES], weights=[weight, 1.0]).items for weight in (1.0, 50.0)
    )
    assert heavy[0].sigma is not None and light[0].sigma is not None
    assert heavy[1].sigma is not None and light[1].sigma is not None
    assert heavy[0].sigma < light[0].sigma
    assert heavy[1].sigma > light[1].sigma


@pytest.mark.random
@pytest.mark.parametrize("protection", [ADD_REMOVE, REPLACE_ONE], ids=lambda each: each.relation)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"objective": "max"},
        {"weights": [1.0, 9.0]},
        {"consistent": False},
        {"measure": [{"type": "marginals", "attributes": [["a", "b", "c", "d"], ["c", "d"]]}]},
    ],
    ids=lambda each: str(next(iter(each), "default")),
)
def test_the_preview_forecasts_the_standard_errors(
    parameters: dict[str, Any], protection: Protection
) -> None:
    """Standard errors of counts do not depend on the noise, so the test holds for any."""
    items = [PAIRS, TRIPLES]
    spec = release({"name": "gaussian", **parameters}, workload=items)
    found = run(
        spec, coded_table(SCHEMA, random_rows(SIZES, 50)), protection=protection, delta=1e-9
    )
    assert found.answers is not None and found.answers.count_standard_errors is not None
    errors = found.answers.count_standard_errors
    pairs = sum(SIZES[x] * SIZES[y] for x in SIZES for y in SIZES if x < y)
    for item, part in zip(
        previewed(items, protection=protection, **parameters).items,
        (errors[:pairs], errors[pairs:]),
        strict=True,
    ):
        assert item.queries == len(part)
        assert item.sigma == pytest.approx(float(np.sqrt(np.mean(part**2))), rel=1e-6)
        assert item.expected_error == pytest.approx(
            float(part.mean()) * math.sqrt(2 / math.pi), rel=1e-6
        )
