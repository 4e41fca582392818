"""`auto`: its choice, its inputs, and its reasons."""

from typing import Any

import pytest

from scrim.spec.budget import UNITS_PER_RHO
from scrim.spec.choice import MechanismChoice
from scrim.spec.errors import SpecError
from scrim.spec.mechanism import MECHANISMS, Auto, Gaussian, PepPub, Screen
from scrim.spec.population import Protection
from scrim.spec.release import AskedRelease
from scrim.spec.schema import Schema
from scrim.spec.workload import Blocks
from synth.planning.choice import Resolved, resolve
from synth.planning.plan import plan
from synth.planning.ranking import rank
from synth.planning.spending import Setting
from tests.support import ADD_REMOVE, REPLACE_ONE, coded_schema
from tests.synth.linked import household, two_level_schema

SIZES = {f"c{position}": 4 for position in range(8)}
SMALL = coded_schema(SIZES)
WIDE = coded_schema({f"c{position}": 200 for position in range(8)})


def ask(schema: Schema = SMALL, **given: Any) -> Resolved:
    """Resolve a release of triples by `auto`, or of what else is given."""
    options = {name: given.pop(name) for name in ("public", "memory_bytes") if name in given}
    protection = given.pop("protection", ADD_REMOVE)
    release = AskedRelease.model_validate(
        {
            "workload": [{"type": "marginals", "k": 3}],
            "mechanism": {"name": "auto"},
            "budget": {"rho": 0.02},
            **given,
        }
    )
    return resolve(release, schema, protection, 1e-9, **options)


def setting(schema: Schema) -> Setting:
    """Nothing is asked, with some budget."""
    return Setting(schema, ADD_REMOVE, UNITS_PER_RHO, 1000, Blocks([], schema))


def chosen(resolved: Resolved) -> str:
    assert resolved.choice is not None
    return resolved.release.mechanism.name


def against(resolved: Resolved) -> dict[str, str]:
    """Why others were passed over, by name."""
    assert resolved.choice is not None
    return {each.mechanism: each.reason for each in resolved.choice.passed_over}


def with_numbers() -> Schema:
    """A category, a number with bins, and `pay`, without."""
    pay = {"name": "pay", "type": "real", "lower": 0, "upper": 1}
    sex = {"name": "sex", "type": "categorical", "values": ["F", "M"]}
    age = {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}}
    return Schema.model_validate({"columns": [sex, age, pay]})


def test_a_mechanism_that_is_named_is_left_alone() -> None:
    found = ask(mechanism={"name": "gem", "rounds": 3})
    assert found.choice is None
    assert found.release.mechanism.model_dump(exclude_defaults=True) == {"name": "gem", "rounds": 3}


def test_networks_are_the_choice_for_one_table_at_any_budget() -> None:
    assert chosen(ask()) == "generative_network"
    assert chosen(ask(WIDE)) == "generative_network"
    assert chosen(ask(mechanism={"name": "auto", "goal": "max_error"})) == "generative_network"
    # Counts of pairs are lost in their noise: single columns alone are measured, and that is said.
    found = ask(budget={"rho": 1e-10})
    assert chosen(found) == "generative_network"
    assert found.choice is not None and "only single columns" in found.choice.reasons[0]
    assert {len(block.attributes) for block in found.plan.measured} == {1}


def test_noisy_answers_follow_the_goal() -> None:
    for goal, objective in (("mean_error", "mean"), ("max_error", "max")):
        auto = Auto.model_validate({"name": "auto", "goal": goal})
        ranked = rank(auto, setting(SMALL), has_public_data=False)
        (found,) = [each.mechanism for each in ranked if isinstance(each.mechanism, Gaussian)]
        assert found.objective == objective


def test_reasons_are_given_for_the_chosen_one_and_the_others() -> None:
    found = ask(WIDE)
    assert found.choice is not None
    assert "times its noise" in found.choice.reasons[0]
    assert "50,000 rows" in found.choice.reasons[1] and "once" in found.choice.reasons[1]
    assert {"gem_plus", "gem", "relaxed_projection", "gaussian"} <= against(found).keys()
    assert "generative_network" not in against(found)
    assert MechanismChoice.model_validate_json(found.choice.model_dump_json()) == found.choice


@pytest.mark.parametrize(
    "item",
    [
        {"type": "prefixes", "count": 5, "seed": 0, "numeric": 1},
        {"type": "halfspaces", "count": 5, "seed": 0},
    ],
)
def test_numbers_without_bins_take_rows(item: dict[str, Any]) -> None:
    found = ask(with_numbers(), workload=[item])
    assert chosen(found) == "private_gsd"
    assert "cannot answer" in against(found)["generative_network"]


def test_numbers_without_bins_are_left_out_unless_they_are_named() -> None:
    marginals = [{"type": "marginals", "attributes": [["sex", "age"]]}]
    found = ask(with_numbers(), workload=marginals)
    assert chosen(found) == "generative_network"
    assert found.plan.left_out == ["pay"]
    found = ask(with_numbers(), workload=marginals, outputs={"columns": ["pay"]})
    assert chosen(found) == "generative_network"
    assert found.plan.binning is not None and found.plan.binning.columns == ["pay"]


def test_groups_of_individuals_take_a_mechanism_for_both_tables() -> None:
    workload = [{"type": "hierarchical", "k": 2}]
    linked = two_level_schema({"rooms": 3}, {"age": 4, "sex": 2}, 3).linked
    found = ask(linked, workload=workload, protection=household(3))
    assert chosen(found) == "h_gem"
    assert against(found).keys() == {"h_mwem"}


class TestPublicData:
    def test_rows_with_every_column_are_blended_with_a_network(self) -> None:
        found = ask(public=SMALL)
        assert chosen(found) == "generative_network_pub"
        assert "does not use the public data" in against(found)["generative_network"]
        assert "a little off" in against(found)["pep_pub"]

    def test_rows_without_some_columns_are_left_out(self) -> None:
        fewer = coded_schema(dict(list(SIZES.items())[:3]))
        for rho in (1e-7, 0.02):
            found = ask(public=fewer, budget={"rho": rho})
            assert chosen(found) == "generative_network"
            assert "they lack" in against(found)["generative_network_pub"]
            assert "without public rows" in against(found)["gem_pub"]
            assert found.choice is not None and "not used" in found.choice.reasons[-1]

    def test_where_a_look_would_tell_nothing_they_are_not_trusted(self) -> None:
        few = Setting(SMALL, ADD_REMOVE, UNITS_PER_RHO // 50, 500, Blocks([], SMALL))
        ranked = rank(Auto(name="auto"), few, has_public_data=True)
        (found,) = [
            each for each in ranked if each.mechanism == PepPub(name="pep_pub", screen=Screen())
        ]
        assert found.refusal is not None and "too much to trust" in found.refusal

    def test_it_is_left_out_where_nothing_can_use_it(self) -> None:
        prefixes = {"type": "prefixes", "count": 5, "seed": 0, "numeric": 1}
        found = ask(with_numbers(), public=with_numbers(), workload=[prefixes])
        assert chosen(found) == "private_gsd"
        assert found.choice is not None
        assert "the public data is not used" in found.choice.reasons[-1]


def test_what_needs_more_memory_than_there_is_is_passed_over() -> None:
    found = ask(memory_bytes=2**21, outputs={"rows": 1000})
    assert chosen(found) != "generative_network"
    assert "MiB" in against(found)["generative_network"]


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"outputs": {"rows": 10**8}}, "outputs.rows"),
        ({"mechanism": {"name": "gem", "components": 100_000}}, "components"),
    ],
)
def test_what_does_not_fit_is_refused_by_name_too(changes: dict[str, Any], remedy: str) -> None:
    named = {"mechanism": {"name": "mwem"}} | changes
    ask(memory_bytes=None, **named)
    with pytest.raises(
        SpecError, match=r"needs about [\d,]+ MiB, but workers have 64 MiB"
    ) as found:
        ask(memory_bytes=2**26, **named)
    assert remedy in str(found.value)


def test_rows_come_before_answers() -> None:
    ranked = rank(Auto(name="auto"), setting(SMALL), has_public_data=True)
    assert [each.mechanism.releases_rows for each in ranked] == [True] * (len(ranked) - 1) + [False]
    names = {each.mechanism.catalogue_name() for each in ranked}
    assert names == {m.catalogue_name() for m in MECHANISMS if m.one_level}


def test_what_is_to_be_measured_is_passed_on() -> None:
    found = ask(mechanism={"name": "auto", "measure": [{"type": "marginals", "k": 1}]})
    measure = found.release.mechanism.measure
    assert measure is not None and measure[0].type == "marginals"
    planned = plan(found.release, SMALL, ADD_REMOVE, UNITS_PER_RHO)
    assert {len(block.attributes) for block in planned.measured} == {1}


def test_whatever_works_is_found() -> None:
    found = ask(budget={"rho": 1e-12}, protection=REPLACE_ONE)
    assert chosen(found) == "fem"
    assert found.choice is not None and "usually smaller errors" in found.choice.reasons[0]
    assert "too small for" in against(found)["generative_network"]


def test_where_nothing_works_every_reason_is_told() -> None:
    with pytest.raises(SpecError, match="no mechanism supports this request") as refused:
        ask(
            protection=REPLACE_ONE,
            budget={"rho": 2e-12},
            workload=[{"type": "halfspaces", "count": 9, "seed": seed} for seed in range(3)],
        )
    assert "cannot answer halfspaces" in str(refused.value)
    for mechanism in MECHANISMS:
        if mechanism.one_level and not mechanism.needs_public_data:
            assert mechanism.catalogue_name() in str(refused.value)


def test_numbers_without_bins_leave_the_choice_open() -> None:
    named = [{"type": "marginals", "attributes": [["age", "pay"]]}]
    planned = ask(with_numbers(), workload=named).plan
    assert planned.binning is not None
    assert "pay" in planned.binning.columns


def test_one_reason_is_told_once() -> None:
    with pytest.raises(SpecError, match=r"^the budget is too small to be divided"):
        ask(budget={"rho": 1e-11})


def test_the_same_question_always_has_the_same_answer() -> None:
    person = Protection(unit="person", max_rows_per_person=3)
    assert ask(WIDE, protection=person) == ask(WIDE, protection=person)


def test_rap_plus_plus_is_refused_without_numbers() -> None:
    sex = {"name": "sex", "type": "categorical", "values": ["F", "M"], "nullable": False}
    age = {"name": "age", "type": "integer", "lower": 0, "upper": 9, "bins": {"width": 5}}
    pairs = [{"type": "marginals", "k": 2}]
    named = {"workload": pairs, "mechanism": {"name": "rap_plus_plus"}}
    categories = Schema.model_validate({"columns": [sex, sex | {"name": "gender"}]})
    with pytest.raises(SpecError, match=r"for numbers: .* use generative_network, or auto"):
        ask(categories, **named)
    ask(Schema.model_validate({"columns": [sex, age]}), **named)


def test_a_limit_on_seconds_chooses_less_work() -> None:
    """Each refusal names the time, and what is chosen is expected to keep the limit."""
    free = ask()
    assert free.plan.seconds is not None
    within = ask(mechanism={"name": "auto", "seconds": free.plan.seconds * 0.7})
    assert within.plan.seconds is not None and within.plan.seconds <= free.plan.seconds * 0.7
    assert within.release.mechanism == free.release.mechanism.model_copy(update={"members": 1})
    assert "processor seconds, more than" in against(within)["generative_network"]
    with pytest.raises(
        SpecError, match=r"within mechanism\.seconds \(1e-06\); the fastest takes about"
    ):
        ask(mechanism={"name": "auto", "seconds": 1e-6})


def test_a_limit_on_seconds_needs_a_time_that_is_known() -> None:
    linked = two_level_schema({"g": 2}, {"i": 2}, 3).linked
    asked = {"workload": [{"type": "hierarchical", "k": 1}], "protection": household(3)}
    with pytest.raises(SpecError, match="how long it takes is not known"):
        ask(linked, mechanism={"name": "auto", "seconds": 100}, **asked)


def test_more_budget_and_more_cells_take_longer() -> None:
    def seconds(**given: Any) -> float:
        found = ask(**given).plan.seconds
        assert found is not None
        return found

    longer = [seconds(budget={"rho": rho}) for rho in (0.0001, 0.02, 2.0)]
    assert longer == sorted(set(longer))
    assert seconds(schema=WIDE, workload=[{"type": "marginals", "k": 2}]) > longer[1]
