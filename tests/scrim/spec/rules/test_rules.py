"""Rules of a schema: their shapes, what they say about fewer columns, and contradictions."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from scrim.spec.rules import impossible_values
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema

COLUMNS: list[dict[str, Any]] = [
    {"name": "sex", "type": "categorical", "values": ["F", "M"], "other": "F", "nullable": False},
    {"name": "rel", "type": "categorical", "values": ["Husband", "Wife", "Child"]},
    {"name": "age", "type": "integer", "lower": 0, "upper": 99, "nullable": False},
    {"name": "start", "type": "real", "lower": 0.0, "upper": 1.0, "decimals": 1},
    {"name": "end", "type": "real", "lower": 0.0, "upper": 1.0, "decimals": 1},
    {"name": "pid", "type": "identifier"},
]
CHILDREN = {"when": {"age": {"max": 15}}, "then": {"rel": ["Child"]}}
HUSBANDS = {"when": {"rel": ["Husband"]}, "then": {"sex": ["M"]}}


def schema(*rules: dict[str, Any]) -> Schema:
    return Schema.model_validate({"columns": COLUMNS, "rules": list(rules)}, strict=False)


def households(*rules: dict[str, Any]) -> TwoLevelSchema:
    return TwoLevelSchema.model_validate(
        {
            "groups": {
                "key": "hid",
                "columns": [{"name": "kind", "type": "categorical", "values": ["flat", "home"]}],
            },
            "individuals": {"group_key": "hid", "columns": COLUMNS[:3]},
            "max_group_size": 3,
            "rules": list(rules),
        },
        strict=False,
    )


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ([{"never": {"town": ["A"]}}], "rule 1: there is no column 'town'"),
        ([{"never": {"pid": ["A"]}}], "rule 1: there is no column 'pid'"),
        ([CHILDREN, {"never": {"sex": ["X"]}}], "rule 2: item 1 of the condition on 'sex'"),
        ([{"never": {"sex": {"min": 1}}}], "'sex' has values, not numbers"),
        ([{"never": {"age": {"min": 100}}}], "'age' is outside its bounds"),
        ([{"never": {"age": {"min": 9, "max": 3}}}], "min is above max"),
        ([{"never": {"age": {"missing": True}}}], "'age' is never missing"),
        ([{"never": {"age": ["12"]}}], "'age' must have numbers"),
        ([{"never": {"age": {}}}], "give min, max or missing"),
        ([{"when": {"sex": ["F"]}, "then": {"sex": ["M"]}}], "both when and then"),
        ([{"compare": ["age", "<=", "start"]}], "cannot be compared"),
        ([{"compare": ["start", "<=", "start"]}], "two different columns"),
        (
            [{"compare": ["start", "<", "end"]}, {"compare": ["end", "<=", "start"]}],
            "rules 1, 2 compare columns in a circle",
        ),
        ([{"group": {"where": {"age": {"min": 18}}, "at_least": 1}}], "only two-level schemas"),
        ([{"sometimes": {"sex": ["F"]}}], "Extra inputs"),
    ],
)
def test_rules_that_do_not_fit_are_refused(rules: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        schema(*rules)


def test_contradictory_rules_are_refused_with_the_smallest_set() -> None:
    with pytest.raises(ValidationError, match="rules 2, 3 and 5 contradict each other"):
        schema(
            CHILDREN,
            {"when": {"age": {"max": 40}}, "then": {"sex": ["F"]}},
            {"when": {"age": {"min": 30}}, "then": {"sex": ["F"]}},
            {"compare": ["start", "<=", "end"]},
            {"never": {"sex": ["F"]}},
        )


def test_comparisons_without_room_contradict_each_other() -> None:
    chain: list[dict[str, Any]] = [
        {"compare": ["start", "<", "end"]},
        {"never": {"end": {"min": 0.1, "missing": True}}},
    ]
    with pytest.raises(ValidationError, match="contradict"):
        schema(*chain, {"never": {"start": {"missing": True}}})
    schema(*chain)  # start may be missing, which follows every comparison


def test_a_group_that_cannot_exist_is_refused() -> None:
    adults = {"group": {"where": {"age": {"min": 18}}, "at_least": 2}}
    households(adults, HUSBANDS)
    with pytest.raises(ValidationError, match="rules 1 and 3 contradict"):
        households(adults, HUSBANDS, {"group": {"where": {"age": {"min": 0}}, "at_most": 1}})


def test_rules_that_connect_too_many_combinations_are_refused() -> None:
    values = [str(value) for value in range(40)]
    columns = [{"name": name, "type": "categorical", "values": values} for name in "abcde"]
    rules = [
        {"when": {one: [value]}, "then": {other: [value]}}
        for one, other in ("ab", "bc", "cd", "de")
        for value in values
    ]
    with pytest.raises(ValidationError, match="connect too many columns"):
        Schema.model_validate({"columns": columns, "rules": rules}, strict=False)


def test_values_that_can_never_occur_are_found() -> None:
    declared = schema(
        HUSBANDS, {"when": {"rel": ["Husband"]}, "then": {"age": {"min": 18}}}, CHILDREN,
        {"when": {"sex": ["M"]}, "then": {"rel": ["Child"]}},
    )  # fmt: skip
    assert list(impossible_values(declared.rule_set)) == [("rel", "Husband")]
    deliberate = schema({"never": {"rel": ["Wife"]}})
    assert not list(impossible_values(deliberate.rule_set))


def test_fewer_columns_keep_what_rules_say_about_them() -> None:
    both = {"when": {"rel": ["Husband"]}, "then": {"sex": ["M"], "age": {"min": 18}}}
    kept = schema(both, CHILDREN, {"compare": ["start", "<=", "end"]}).project({"rel", "sex"})
    assert [rule.columns for rule in kept.rules] == [("rel", "sex")]
    linked = households(HUSBANDS, {"group": {"where": {"age": {"min": 18}}, "at_least": 1}}).linked
    assert len(linked.rules) == 2
    assert [rule.columns for rule in linked.project({"rel", "sex"}).rules] == [("rel", "sex")]


def test_a_schema_with_rules_is_read_back() -> None:
    declared = schema(CHILDREN, HUSBANDS, {"compare": ["start", "<", "end"]})
    assert Schema.model_validate_json(declared.model_dump_json()) == declared


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_contradictions_are_those_that_enumeration_finds(data: st.DataObject) -> None:
    """Compared with a table of all combinations, for rules over small columns."""
    values = ["a", "b", "c"]
    columns = [
        {"name": name, "type": "categorical", "values": values, "other": "a", "nullable": False}
        for name in "xyz"
    ]
    lists = st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)
    never = st.dictionaries(st.sampled_from("xyz"), lists, min_size=1, max_size=2)
    rules = data.draw(st.lists(never, min_size=1, max_size=9))
    is_possible = any(
        not any(all(row[n] in some for n, some in rule.items()) for rule in rules)
        for row in (dict(zip("xyz", row, strict=True)) for row in product(values, repeat=3))
    )
    declared = {"columns": columns, "rules": [{"never": rule} for rule in rules]}
    if is_possible:
        Schema.model_validate(declared, strict=False)
        return
    with pytest.raises(ValidationError, match=r"contradict|cannot be followed"):
        Schema.model_validate(declared, strict=False)


def test_what_a_column_of_individuals_implies_about_groups_must_be_declared() -> None:
    def declared(*rules: dict[str, Any]) -> None:
        number = {"type": "integer", "lower": 0, "upper": 9}
        TwoLevelSchema.model_validate(
            {
                "groups": {
                    "key": "h",
                    "columns": [number | {"name": "low"}, number | {"name": "high"}],
                },
                "individuals": {"group_key": "h", "columns": [number | {"name": "own"}]},
                "max_group_size": 2,
                "rules": list(rules),
            },
            strict=False,
        )

    implied = ({"compare": ["low", "<=", "own"]}, {"compare": ["own", "<=", "high"]})
    with pytest.raises(ValidationError, match=r'add the rule .*"low", "<=", "high"'):
        declared(*implied)
    declared(*implied, {"compare": ["low", "<=", "high"]})
