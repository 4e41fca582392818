"""How `gaussian` divides its budget over parts of marginals under add/remove."""

import math
from itertools import combinations
from typing import Any

import pytest

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.workload import MarginalBlock, PartBlock
from synth.planning import gaussian
from synth.planning.choice import resolve
from synth.planning.forecast import forecast
from synth.planning.plan import ReleasePlan, plan
from synth.planning.precision import subsets
from synth.planning.spending import OneShot
from synth.planning.subject import Subject
from tests.support import ADD_REMOVE, REPLACE_ONE, coded_schema, release

SIZES = {"a": 2, "b": 3, "c": 4, "d": 6}
SCHEMA = coded_schema(SIZES)
PAIRS = {"type": "marginals", "k": 2}
SINGLES = {"type": "marginals", "k": 1}
TRIPLES = {"type": "marginals", "k": 3}
UNITS = 10**12


def planned(
    workload: list[dict[str, Any]],
    protection: Protection = ADD_REMOVE,
    schema: Schema = SCHEMA,
    **parameters: Any,
) -> ReleasePlan:
    spec = release({"name": "gaussian", **parameters}, workload=workload)
    return plan(spec, schema, protection, UNITS)


def cells(names: tuple[str, ...]) -> int:
    return math.prod(SIZES[name] for name in names)


def test_every_part_of_the_workload_is_measured_once() -> None:
    found = planned([TRIPLES, PAIRS])
    assert all(isinstance(block, PartBlock) for block in found.measured)
    names = [block.attributes for block in found.measured]
    assert sorted(names) == sorted(
        part for part in subsets(tuple(SIZES)) if part and part != tuple(SIZES)
    )


@pytest.mark.parametrize("rows", [1, 2])
def test_shares_are_those_of_the_closed_form(rows: int) -> None:
    """p_B = sqrt(v_B / c_B): the price of a part is then proportional to sqrt(v_B c_B)."""
    protection = Protection(unit="person", max_rows_per_person=rows)
    found = planned([TRIPLES], protection)
    roots = {}
    for part in [(), *(block.attributes for block in found.measured)]:
        centred = math.prod(1 - 1 / SIZES[name] for name in part)
        load = sum(
            # Fractions are divided by the number of rows, the part of no columns.
            cells(names) * centred / (cells(names) // cells(part)) ** 2 if part else 1.0
            for names in combinations(SIZES, 3)
            if set(part) <= set(names)
        )
        roots[part] = math.sqrt(load * centred)
    whole = sum(roots.values())
    assert isinstance(found.spending, OneShot)
    assert found.split.row_count / UNITS == pytest.approx(roots[()] / whole, rel=1e-3)
    for block, units in zip(found.measured, found.spending.measure, strict=True):
        assert units / UNITS == pytest.approx(roots[block.attributes] / whole, rel=1e-3)
    assert sum(found.spending.measure) + found.split.row_count <= UNITS


@pytest.mark.parametrize("workload", [[TRIPLES], [PAIRS], [SINGLES], [PAIRS, SINGLES]])
def test_parts_are_more_precise_than_whole_marginals(
    workload: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, fractions = squared_errors(workload)
    monkeypatch.setattr(gaussian, "MAX_PART_CELLS", 1)
    whole_counts, whole_fractions = squared_errors(workload)
    assert fractions < whole_fractions
    # The share of the row count serves fractions, and exceeds what counts alone need.
    assert counts < 1.1 * whole_counts


def squared_errors(workload: list[dict[str, Any]]) -> tuple[float, float]:
    """The sums of the variances of all counts, and of all fractions in the worst case, in counts."""
    spec = release({"name": "gaussian"}, workload=workload, budget={"rho": 1.0})
    resolved = resolve(spec, SCHEMA, ADD_REMOVE, UNITS)
    items = forecast(resolved, Subject("rows", SCHEMA, ADD_REMOVE)).items
    counts = sum(item.queries * (item.sigma or math.nan) ** 2 for item in items)
    rows = UNITS / (2 * resolved.plan.split.row_count)
    return counts, counts + len(resolved.plan.asked) * rows


ONE = coded_schema({**SIZES, "one": 1})


@pytest.mark.parametrize(
    ("workload", "changes"),
    [
        ([PAIRS], {"protection": REPLACE_ONE}),
        ([PAIRS], {"consistent": False}),
        ([PAIRS], {"measure": [PAIRS]}),
        ([{"type": "marginals", "attributes": [["a", "b", "c"]]}], {}),
        ([PAIRS], {"schema": ONE}),
    ],
    ids=["replace-one", "raw", "named", "one marginal", "a column of one value"],
)
def test_whole_marginals_are_measured_otherwise(
    workload: list[dict[str, Any]], changes: dict[str, Any]
) -> None:
    found = planned(workload, **changes)
    assert all(isinstance(block, MarginalBlock) for block in found.measured)
    counted = 0 if changes.get("protection") else UNITS // 100
    assert found.split.row_count == counted


@pytest.mark.parametrize(("limit", "value"), [("MAX_PART_CELLS", 23), ("MAX_PARTS", 23)])
def test_large_parts_and_many_parts_are_not_measured(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(planned([PAIRS]).measured[0], PartBlock)
    monkeypatch.setattr(gaussian, limit, value)
    assert isinstance(planned([PAIRS]).measured[0], MarginalBlock)


def test_few_marginals_with_many_columns_are_measured_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """4 triples have 14 parts, and 6 pairs have 10: each measurement is a pass over the rows."""
    monkeypatch.setattr(gaussian, "MOST_PARTS", 1)
    assert isinstance(planned([TRIPLES]).measured[0], MarginalBlock)
    assert isinstance(planned([PAIRS]).measured[0], PartBlock)


def test_the_share_of_the_row_count_is_larger_if_fewer_cells_share_the_budget() -> None:
    assert planned([SINGLES]).split.row_count > planned([TRIPLES]).split.row_count
