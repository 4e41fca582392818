"""How a budget is divided, and which releases are refused in advance."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.spec.budget import UNITS_PER_RHO
from scrim.spec.errors import DomainTooLarge, SpecError
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from scrim.spec.workload.marginals import MAX_TABLE_CELLS
from synth.planning.candidates import left_out
from synth.planning.plan import ReleasePlan, plan, split_budget
from synth.planning.spending import AnnealedRounds, OneShot, Rounds
from tests.support import coded_schema
from tests.synth.linked import household, two_level_schema

BY_ROW = Protection()
PUBLIC_SIZE = Protection(relation="replace_one")


def release(mechanism: dict[str, Any] | None = None, **fields: Any) -> ReleaseSpec:
    return ReleaseSpec.model_validate(
        {
            "workload": [{"type": "marginals", "k": 2}],
            "mechanism": mechanism or {"name": "mwem"},
            "budget": {"rho": 1.0},
            **fields,
        }
    )


def schema(columns: int = 3, *, values: int = 10) -> Schema:
    """That many columns c0, c1, ... with that many codes each."""
    column = {"type": "integer", "lower": 0, "upper": values - 1, "nullable": False}
    return Schema.model_validate(
        {"columns": [{**column, "name": f"c{i}", "bins": {"width": 1}} for i in range(columns)]}
    )


def unbinned() -> Schema:
    """Two columns with bins, and `pay`, without."""
    pay = {"name": "pay", "type": "real", "lower": 0, "upper": 1}
    return Schema.model_validate({"columns": [*schema(2).model_dump()["columns"], pay]})


def check(spec: ReleaseSpec, schema: Schema) -> ReleasePlan:
    """The plan with a very large budget."""
    return plan(spec, schema, PUBLIC_SIZE, 10 * UNITS_PER_RHO)


def measured(spec: ReleaseSpec, schema: Schema) -> list[tuple[str, ...]]:
    """The columns of everything that may be measured."""
    return [block.attributes for block in check(spec, schema).measured]


protections = st.builds(
    lambda relation, rows: Protection.model_validate(
        {"relation": relation, "unit": "person", "max_rows_per_person": rows}
        if rows
        else {"relation": relation}
    ),
    st.sampled_from(["add_remove", "replace_one"]),
    st.integers(0, 5),
)
shares = st.none() | st.floats(0.001, 0.999)


@given(protections, shares, st.integers(0, 10**15))
def test_the_parts_never_exceed_the_whole(
    protection: Protection, share: float | None, units: int
) -> None:
    certify = None if share is None else {"share": share}
    spec = release(outputs={"certify": certify})
    try:
        split = split_budget(spec, schema(), protection, units)
    except SpecError as refused:
        assert "too small" in str(refused)
        return
    assert split.row_count + split.certify + split.mechanism <= units
    assert split.mechanism >= 1
    # Only operations that will be run are paid for.
    assert (split.row_count >= 1) == (protection.row_count_sensitivity > 0)
    assert (split.certify >= 1) == (share is not None)


@given(
    st.integers(1, 100),
    st.integers(1, 10),
    st.sampled_from(["equal", "annealed"]),
    shares,
    st.integers(1, 10 * UNITS_PER_RHO),
)
def test_every_operation_of_a_job_fits_into_its_budget(
    rounds: int, per_round: int, schedule: str, share: float | None, units: int
) -> None:
    certify = None if share is None else {"share": share}
    mechanism = {"name": "mwem", "rounds": rounds, "per_round": per_round, "schedule": schedule}
    spec = release(mechanism, outputs={"certify": certify})
    try:
        planned = plan(spec, schema(), BY_ROW, units)
    except SpecError:
        return
    split, inner = planned.split, planned.spending
    assert isinstance(inner, Rounds)
    operations = inner.rounds * (inner.select + per_round * inner.measure)
    assert split.row_count + operations + split.certify <= units
    if isinstance(inner, AnnealedRounds):
        assert operations <= inner.reserved <= split.mechanism


@pytest.mark.parametrize(
    ("mechanism", "rounds", "per_round"),
    [
        ({"name": "mwem"}, 16 * 3, 1),
        ({"name": "mwem", "per_round": 5}, 10, 5),
        ({"name": "gem_plus"}, 8, 3),
        ({"name": "gem_plus", "rounds": 7, "per_round": 1}, 7, 1),
    ],
)
def test_annealed_rounds_measure_so_many_times_for_each_column_at_most(
    mechanism: dict[str, Any], rounds: int, per_round: int
) -> None:
    spending = check(release({"schedule": "annealed", **mechanism}), schema(3)).spending
    assert isinstance(spending, AnnealedRounds)
    assert (spending.rounds, spending.per_round) == (rounds, per_round)
    assert spending.opening * len(spending.opened) + spending.reserved == 10 * UNITS_PER_RHO


def test_the_shares_of_a_common_job() -> None:
    spec = release(outputs={"certify": {"share": 0.02}})
    split = plan(spec, schema(), BY_ROW, UNITS_PER_RHO).split
    assert split.row_count == UNITS_PER_RHO // 100
    assert split.certify == UNITS_PER_RHO // 50
    assert split.mechanism == UNITS_PER_RHO - split.row_count - split.certify


def test_a_public_number_of_rows_costs_nothing() -> None:
    assert plan(release(), schema(), PUBLIC_SIZE, 10**6).split.mechanism == 10**6


@pytest.mark.parametrize("units", [0, 1, 99])
def test_a_budget_that_cannot_pay_for_counting_rows_is_refused(units: int) -> None:
    with pytest.raises(SpecError, match="too small"):
        plan(release({"name": "mwem"}), schema(), BY_ROW, units)


def test_a_budget_that_cannot_pay_for_certifying_is_refused() -> None:
    spec = release(outputs={"certify": {"share": 0.001}})
    with pytest.raises(SpecError, match="too small"):
        plan(spec, schema(), PUBLIC_SIZE, 999)


def test_a_budget_that_cannot_pay_for_the_mechanism_is_refused() -> None:
    with pytest.raises(SpecError, match="20 rounds of 1"):
        plan(release({"name": "mwem", "rounds": 20}), schema(), PUBLIC_SIZE, 21)
    with pytest.raises(SpecError, match="too small for 3 measurements"):
        plan(release({"name": "gaussian"}), schema(), PUBLIC_SIZE, 2)


# What is measured ---------------------------------------------------------------------------------


def test_the_workload_is_measured_unless_said_otherwise() -> None:
    assert measured(release(), schema()) == [("c0", "c1"), ("c0", "c2"), ("c1", "c2")]
    other = release({"name": "mwem", "measure": [{"type": "marginals", "k": 3}]})
    assert measured(other, schema()) == [("c0", "c1", "c2")]


def test_a_marginal_that_two_items_name_is_measured_once() -> None:
    items = [{"type": "marginals", "k": 1}, {"type": "marginals", "attributes": [["c0"], ["c1"]]}]
    assert measured(release(workload=items), schema(2)) == [("c0",), ("c1",)]


def test_answers_need_a_measurement_that_covers_them() -> None:
    def measuring(*attributes: list[str]) -> ReleaseSpec:
        items = [{"type": "marginals", "attributes": list(attributes)}]
        return release({"name": "gaussian", "measure": items})

    check(measuring(["c0", "c1", "c2"]), schema())
    check(measuring(["c0", "c1"], ["c1", "c2"], ["c0", "c2"]), schema())
    with pytest.raises(SpecError, match=r"none covers \(c0, c2\); add it to mechanism.measure"):
        check(measuring(["c0", "c1"], ["c1", "c2"]), schema())


def test_many_marginals_are_checked_in_little_time() -> None:
    many = release(
        {"name": "gaussian"}, workload=[{"type": "marginals", "k": 3, "count": 20_000, "seed": 1}]
    )
    start = time.process_time()
    check(many, schema(100))
    assert time.process_time() - start < 5


# What cannot work ---------------------------------------------------------------------------------


def test_a_number_without_bins_cannot_be_asked_about() -> None:
    asked = [{"type": "marginals", "attributes": [["c0", "pay"]]}]
    for name in ("gaussian", "mwem", "pep", "private_gsd"):
        with pytest.raises(SpecError, match="column 'pay' needs bins"):
            check(release({"name": name}, workload=asked), unbinned())


def test_all_marginals_are_those_of_columns_with_cells() -> None:
    assert measured(release({"name": "gaussian"}), unbinned()) == [("c0", "c1")]


@pytest.mark.parametrize("item", [{"type": "prefixes", "count": 5, "seed": 1, "numeric": 1}])
def test_a_mechanism_that_cannot_answer_names_those_that_can(item: dict[str, Any]) -> None:
    with pytest.raises(
        SpecError, match="gem cannot answer prefixes; mechanisms that can: gaussian, private"
    ):
        check(release({"name": "gem"}, workload=[item]), schema())


# Which orders are measured ------------------------------------------------------------------------

TRIPLES = [{"type": "marginals", "k": 3}]


@pytest.mark.parametrize("rho", [1e-4, 1e-2, 1.0])
def test_what_is_asked_is_measured_at_any_budget(rho: float) -> None:
    spec = release({"name": "relaxed_projection"}, workload=TRIPLES)
    planned = plan(spec, schema(5), PUBLIC_SIZE, round(rho * UNITS_PER_RHO))
    assert {len(block.attributes) for block in planned.measured} == {1, 3}


def test_single_columns_alone_are_measured_where_pairs_are_lost_in_their_noise() -> None:
    spec = release({"name": "relaxed_projection"}, workload=TRIPLES, expected_rows=100)
    planned = plan(spec, schema(13), PUBLIC_SIZE, UNITS_PER_RHO // 10**6)
    assert {len(block.attributes) for block in planned.measured} == {1}


def test_rounds_choose_among_pairs_at_most() -> None:
    spec = release({"name": "gem"}, workload=TRIPLES, expected_rows=10**9)
    assert {len(names) for names in measured(spec, schema(5))} == {2}


def test_a_single_measurement_has_the_one_way_marginals_too() -> None:
    spec = release({"name": "relaxed_projection"}, workload=TRIPLES)
    found = {len(names) for names in measured(spec, schema(4))}
    assert 1 in found and max(found) > 1


def test_the_smallest_are_measured_and_pairs_in_place_of_the_rest() -> None:
    spec = release({"name": "relaxed_projection"}, workload=TRIPLES, expected_rows=10**12)
    planned = check(spec, uneven([10, 900, 900, 20, 2]))
    found = {block.attributes for block in planned.measured}
    assert {names for names in found if len(names) == 1} == {(f"c{i}",) for i in range(5)}
    # 400 and 18,000 cells fit; 162,000 and more do not, beside them. Pairs tell what they left out.
    assert ("c0", "c3", "c4") in found and ("c0", "c1", "c4") in found
    assert ("c0", "c1", "c2") not in found and ("c1", "c2") not in found
    assert sum(block.size(uneven([10, 900, 900, 20, 2])) for block in planned.measured) < 10**6


def test_one_wide_column_takes_nothing_from_the_others() -> None:
    spec = release({"name": "generative_network"}, workload=[{"type": "marginals", "k": 2}])
    found = measured(spec, uneven([3000, *[5] * 8]))
    assert {names for names in found if len(names) == 2} >= {
        (f"c{i}", f"c{j}") for i in range(1, 9) for j in range(i + 1, 9)
    }
    assert ("c0", "c1") in found


def test_a_million_counts_of_pairs_are_measured() -> None:
    spec = release({"name": "generative_network"}, workload=[{"type": "marginals", "k": 2}])
    assert ("c0", "c1") in measured(spec, uneven([900, 1000, 5]))
    assert ("c0", "c1") not in measured(spec, uneven([1000, 1000, 5]))


def test_single_columns_get_more_where_pairs_are_left_out() -> None:
    def single_share(sizes: list[int]) -> float:
        spec = release({"name": "generative_network"}, workload=[{"type": "marginals", "k": 2}])
        planned = check(spec, uneven(sizes))
        assert isinstance(planned.spending, OneShot)
        paid = zip(planned.measured, planned.spending.measure, strict=True)
        return sum(units for block, units in paid if len(block.attributes) == 1) / sum(
            planned.spending.measure
        )

    assert single_share([5, 5, 5]) == pytest.approx(0.05, rel=1e-6)
    # All but 25 of its 1,010,025 cells are about the widest pair, which is left out.
    assert single_share([1000, 1000, 5]) == pytest.approx(0.05 + 0.45 / 1.01, rel=1e-3)


def test_ranges_over_a_pair_do_not_stand_in_for_its_table() -> None:
    ranges = {"type": "ranges", "k": 2, "count": 9, "seed": 1}
    spec = release({"name": "generative_network"}, workload=[{"type": "marginals", "k": 2}, ranges])
    planned = check(spec, uneven([1000, 1000, 5]))
    assert left_out(planned.asked.marginals, planned.measured) == [("c0", "c1")]


def test_a_genetic_search_measures_what_is_asked() -> None:
    spec = release({"name": "private_gsd"}, workload=TRIPLES)
    assert {len(names) for names in measured(spec, schema(4))} == {1, 3}


def uneven(sizes: list[int]) -> Schema:
    """Columns of given sizes."""
    column = {"type": "integer", "lower": 0, "nullable": False, "bins": {"width": 1}}
    columns = [{**column, "name": f"c{i}", "upper": n - 1} for i, n in enumerate(sizes)]
    return Schema.model_validate({"columns": columns})


def test_gem_plus_chooses_among_the_smallest_pairs() -> None:
    spec = release({"name": "gem_plus"}, workload=TRIPLES)
    assert {len(names) for names in measured(spec, schema(5))} == {2}
    found = measured(spec, uneven([10, 900, 900, 20, 2]))
    assert found[0] == ("c0", "c4")
    assert ("c0", "c2") in found and ("c1", "c2") not in found
    ones = release({"name": "gem_plus"}, workload=[{"type": "marginals", "k": 1}])
    assert measured(ones, schema(2)) == [("c0",), ("c1",)]


def test_a_number_without_bins_cannot_be_released() -> None:
    asked = [{"type": "marginals", "attributes": [["c0", "c1"]]}]
    for name in ("gaussian", "mwem"):
        check(release({"name": name}, workload=asked), unbinned())
    with pytest.raises(SpecError, match="column 'pay' needs bins: mwem releases rows"):
        check(release(workload=asked, outputs={"columns": ["pay"]}), unbinned())


def test_too_many_cells_name_their_number_and_the_way_out() -> None:
    with pytest.raises(DomainTooLarge) as refused:
        check(release(), schema(8))
    assert "100,000,000 combinations" in str(refused.value)
    assert "gaussian" in str(refused.value)
    assert "wider bins" in str(refused.value)


def test_columns_that_are_not_asked_about_cost_no_cells() -> None:
    asked = [{"type": "marginals", "attributes": [["c0", "c1"]]}]
    check(release(workload=asked), schema(8))


def test_a_marginal_too_large_for_memory_is_refused() -> None:
    asked = [{"type": "marginals", "k": 3}]
    values = 300
    assert values**3 > MAX_TABLE_CELLS
    with pytest.raises(DomainTooLarge, match=r"\(c0, c1, c2\) has 27,000,000 queries"):
        check(release({"name": "gaussian"}, workload=asked), schema(values=values))


def test_all_marginals_leave_out_those_that_are_too_large() -> None:
    wide = coded_schema({"a": 300, "b": 300, "c": 300, "d": 2})
    found = check(release({"name": "gaussian"}, workload=[{"type": "marginals", "k": 3}]), wide)
    assert [block.attributes for block in found.asked] == [tuple("abd"), tuple("acd"), tuple("bcd")]
    assert found.asked.left_out == [tuple("abc")]
    named = [{"type": "marginals", "attributes": [["a", "b", "c"]]}]
    with pytest.raises(DomainTooLarge, match="27,000,000"):
        check(release({"name": "gaussian"}, workload=named), wide)


def test_a_refusal_comes_before_the_division() -> None:
    with pytest.raises(SpecError, match="no column 'age'"):
        plan(
            release(workload=[{"type": "marginals", "attributes": [["age"]]}]), schema(), BY_ROW, 0
        )


@pytest.mark.parametrize(
    ("rows", "units", "rounds", "per_round"),
    [
        pytest.param(4, UNITS_PER_RHO // 1000, 1, 1, id="nothing is worth it, one is measured"),
        pytest.param(10**5, UNITS_PER_RHO // 400_000, 1, 6, id="everything stands out, a little"),
        pytest.param(10**6, UNITS_PER_RHO, 6, 1, id="everything stands out"),
    ],
)
def test_groups_have_as_many_rounds_as_their_cells_are_worth(
    rows: int, units: int, rounds: int, per_round: int
) -> None:
    linked = two_level_schema({"a": 2, "b": 3}, {"c": 4}, 3).linked
    spec = release(
        {"name": "h_gem"}, workload=[{"type": "hierarchical", "k": 2}], expected_rows=rows
    )
    found = plan(spec, linked, household(3, "add_remove"), units).spending
    assert isinstance(found, Rounds)
    assert (found.rounds, found.per_round) == (rounds, per_round)


BY_PERSON = Protection(unit="person", relation="replace_one", max_rows_per_person=1)


def test_what_people_cannot_move_is_read_for_nothing_and_the_rest_shares_the_opening() -> None:
    linked = two_level_schema({"a": 2, "b": 3}, {"c": 4}, 3).linked
    spec = release({"name": "h_gem"}, workload=[{"type": "hierarchical", "k": 2}])
    units = UNITS_PER_RHO
    found = plan(spec, linked, BY_PERSON, units).spending
    assert isinstance(found, Rounds)
    columns = [(block.attributes, getattr(block, "level", "sizes")) for block in found.public]
    assert columns == [
        ((), "individual"),
        ((), "sizes"),
        (("a",), "group"),
        (("b",), "group"),
        (("a", "b"), "group"),
        (("a", "b"), "individual"),
    ]
    assert [block.attributes for block in found.opened] == [("c",)]
    assert found.opening == pytest.approx(0.2 * units, abs=1)
    assert found.total <= units
    # Of the six tables, two are public.
    assert found.rounds * found.per_round == 4


def test_memory_holds_all_that_is_public_however_little_is_measured() -> None:
    linked = two_level_schema({"a": 50, "b": 60}, {"c": 4}, 3).linked
    mechanism = {"name": "h_gem", "rounds": 1, "per_round": 1}
    spec = release(
        mechanism, workload=[{"type": "hierarchical", "attributes": [["a", "b"], ["c"]]}]
    )
    by_person = plan(spec, linked, BY_PERSON, UNITS_PER_RHO).memory_bytes
    by_household = plan(spec, linked, household(3, "replace_one"), UNITS_PER_RHO).memory_bytes
    # Of four tables one is measured: where two are public, these are fitted as well.
    assert by_person is not None and by_household is not None
    assert by_person > by_household
