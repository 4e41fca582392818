"""Workload items about numbers: their queries, and the inputs that they refuse."""

import math
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.workload import (
    MAX_BLOCKS,
    BinaryTree,
    ConjunctionBlock,
    Halfspaces,
    Prefixes,
    Ranges,
    TreeBlock,
    Workload,
    WorkloadItem,
    expand,
)
from scrim.spec.workload.conditions import HasCode, InInterval, IsMissing, numeric_columns

SEX = {"name": "sex", "type": "categorical", "values": ["F", "M"], "other": "M"}
JOB = {"name": "job", "type": "categorical", "values": ["a", "b", "c"], "nullable": False}
AGE = {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}}
PAY = {"name": "pay", "type": "real", "lower": 0.0, "upper": 1e4, "nullable": False}
PID = {"name": "pid", "type": "identifier"}


def new_schema(*columns: dict[str, Any]) -> Schema:
    return Schema.model_validate({"columns": list(columns or (SEX, AGE, JOB, PAY, PID))})


SCHEMA = new_schema()


def item(**fields: Any) -> WorkloadItem:
    return TypeAdapter[WorkloadItem](WorkloadItem).validate_python(fields)


def tree(**fields: Any) -> WorkloadItem:
    return item(type="binary_tree", **fields)


def ranges(*queries: dict[str, Any]) -> Ranges:
    return Ranges(type="ranges", queries=list(queries))


@pytest.mark.parametrize(
    ("fields", "columns", "expected"),
    [
        ({"k": 1}, (), [("age",), ("pay",)]),
        ({"k": 2}, (), [("sex", "age"), ("sex", "pay"), ("age", "job"), ("job", "pay")]),
        ({"k": 3}, (), [("sex", "age", "pay"), ("age", "job", "pay")]),
        ({"k": 2}, (AGE, PAY), [("age", "pay")]),
        ({"attributes": [["pay", "sex"], ["sex", "pay"], ["age"]]}, (), [("sex", "pay"), ("age",)]),
    ],
)
def test_trees_cross_one_category_with_numbers(
    fields: dict[str, Any], columns: Any, expected: list[tuple[str, ...]]
) -> None:
    found = tree(levels=3, **fields).expand(new_schema(*columns))
    assert [block.attributes for block in found] == expected
    assert all(isinstance(block, TreeBlock) and block.levels == 3 for block in found)


def test_the_cells_of_a_tree() -> None:
    (block,) = tree(attributes=[["sex", "age", "pay"]], levels=2).expand(SCHEMA)
    sizes = [list(table.values()) for table in block.tables(SCHEMA)]
    assert sizes == [[3, 3, 2], [3, 3, 4], [3, 5, 2], [3, 5, 4]]
    assert block.size(SCHEMA) == sum(math.prod(table) for table in sizes)
    moved = block.sensitivity(SCHEMA, Protection(relation="replace_one"))
    assert (moved.l1, moved.l2_squared, moved.linf) == (8, 8, 1)


def test_far_too_many_cells_are_told_without_listing_them() -> None:
    columns = [{**PAY, "name": f"x{i}"} for i in range(10)]
    (block,) = tree(k=10, levels=16).expand(new_schema(*columns))
    assert block.size(new_schema(*columns)) == (2**17 - 2) ** 10
    assert block.sensitivity(new_schema(*columns), Protection()).l2_squared == 16**10


@pytest.mark.parametrize(
    ("fields", "columns", "message"),
    [
        ({"k": 2}, (SEX, JOB), "no numeric column"),
        ({"k": 4}, (), "k 4 need 3 numeric columns; the schema has 2"),
        ({"attributes": [["sex", "job"]]}, (), r"\(sex, job\) has none; ask for a marginal"),
        ({"attributes": [["age", "rent"]]}, (), "no column 'rent'"),
        ({"attributes": [["age", "age"]]}, (), "named twice"),
        ({"k": 4}, [{**PAY, "name": f"x{i}"} for i in range(60)], f"more than {MAX_BLOCKS}"),
        ({"k": 10}, [{**PAY, "name": f"x{i}"} for i in range(999)], f"more than {MAX_BLOCKS}"),
    ],
)
def test_trees_that_the_schema_cannot_have(
    fields: dict[str, Any], columns: Any, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        tree(**fields).expand(new_schema(*columns))


def test_named_ranges() -> None:
    asked = ranges(
        {"sex": "F", "age": [20, 30.5]},
        {"sex": None, "age": None},
        {"pay": [0, 1e4], "job": "other"},
    )
    (block,) = asked.expand(SCHEMA)
    assert isinstance(block, ConjunctionBlock)
    assert block.item.conjunctions(SCHEMA) == [
        (HasCode("sex", 0), InInterval("age", 20, 30.5)),
        (HasCode("sex", 2), IsMissing("age")),
        (InInterval("pay", 0, 1e4), HasCode("job", 3)),
    ]
    assert block.attributes == ("sex", "age", "job", "pay")
    assert (block.size(SCHEMA), block.is_whole) == (3, False)
    assert block.sensitivity(SCHEMA, Protection(relation="replace_one")).l2_squared == 3


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"rent": [0, 1]}, "no column 'rent' to query; it has sex, age, job, pay"),
        ({"pid": "7"}, "no column 'pid'"),
        ({"pay": None}, "'pay' is declared to have no missing values"),
        ({"job": None}, "'job' is declared to have no missing values"),
        ({"sex": "X"}, "'sex' is categorical: name one of its values"),
        ({"sex": [0, 1]}, "'sex' is categorical: name one of its values"),
        ({"age": "old"}, r"'age' is numeric: give an interval \[low, high\]"),
        ({"age": [30, 20]}, "between its bounds 0 and 99"),
        ({"age": [20, 20]}, "must increase"),
        ({"age": [-1, 20]}, "between its bounds"),
        ({"age": [1, 100]}, "between its bounds"),
    ],
)
def test_ranges_that_the_schema_cannot_answer(query: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        ranges(query).expand(SCHEMA)


def test_random_ranges_end_at_edges_where_there_are_bins() -> None:
    drawn = Ranges(type="ranges", k=2, count=300, seed=5)
    (block,) = drawn.expand(SCHEMA)
    assert block.attributes == ("sex", "age", "job", "pay")
    conjunctions = drawn.conjunctions(SCHEMA)
    assert len(conjunctions) == block.size(SCHEMA) == 300
    conditions = [condition for some in conjunctions for condition in some]
    assert all(len({c.column for c in some}) == 2 for some in conjunctions)
    ages = [c for c in conditions if isinstance(c, InInterval) and c.column == "age"]
    edges = {*range(0, 100, 10), 99}
    assert {end for c in ages for end in (c.low, c.high)} == edges
    pays = [c for c in conditions if isinstance(c, InInterval) and c.column == "pay"]
    assert all(0 <= c.low <= c.high <= 1e4 for c in pays)
    assert {c.code for c in conditions if isinstance(c, HasCode) and c.column == "sex"} == {0, 1, 2}
    missing = [c for c in conditions if isinstance(c, IsMissing)]
    assert {c.column for c in missing} == {"age"}
    assert 0.02 < len(missing) / (len(missing) + len(ages)) < 0.2


def test_random_ranges_need_enough_columns() -> None:
    with pytest.raises(SpecError, match="5-way ranges need 5 columns; there are 4"):
        Ranges(type="ranges", k=5, count=1, seed=0).expand(SCHEMA)


def test_random_prefixes() -> None:
    drawn = Prefixes(type="prefixes", count=300, seed=5)
    (block,) = drawn.expand(SCHEMA)
    assert block.attributes == ("sex", "age", "job", "pay")
    for category, *numbers in drawn.conjunctions(SCHEMA):
        assert isinstance(category, HasCode)
        assert {number.column for number in numbers} == {"age", "pay"}
        for number in numbers:
            column = numeric_columns(SCHEMA)[number.column]
            assert isinstance(number, InInterval | IsMissing)
            assert (
                not isinstance(number, InInterval) or number.low == column.line.lower <= number.high
            )


def test_prefixes_of_numbers_alone_read_no_category() -> None:
    (block,) = Prefixes(type="prefixes", count=3, seed=1, categorical=0, numeric=1).expand(SCHEMA)
    assert block.attributes == ("age", "pay")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"categorical": 3}, "need 3 categorical columns and the schema has 2; set `categorical`"),
        ({"numeric": 3}, "need 3 numeric columns and the schema has 2; set `numeric`"),
    ],
)
def test_prefixes_that_the_schema_cannot_answer(fields: dict[str, int], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Prefixes(type="prefixes", count=1, seed=1, **fields).expand(SCHEMA)


def test_more_weights_than_can_be_drawn() -> None:
    schema = new_schema({**SEX, "values": [str(i) for i in range(2000)], "other": "0"})
    Halfspaces(type="halfspaces", count=400_000, seed=1).expand(schema)
    with pytest.raises(SpecError, match=r"1,200,600,000 weights.* fewer categories"):
        Halfspaces(type="halfspaces", count=600_000, seed=1).expand(schema)


@pytest.mark.parametrize("kind", [Prefixes, Ranges])
def test_random_choices_follow_from_the_seed(kind: Any) -> None:
    more = {"k": 2} if kind is Ranges else {}
    name = "ranges" if kind is Ranges else "prefixes"
    chosen = [kind(type=name, count=50, seed=s, **more) for s in (3, 3, 4, 2**53 - 1)]
    first, again, *others = [drawn.conjunctions(SCHEMA) for drawn in chosen]
    assert first == again
    assert all(first != other for other in others)
    fewer = kind(type=name, count=20, seed=3, **more).conjunctions(SCHEMA)
    assert fewer == first[:20]


def test_the_choice_is_the_same_for_ever() -> None:
    (prefix,) = Prefixes(type="prefixes", count=1, seed=1).conjunctions(SCHEMA)
    assert prefix == (
        HasCode(column="sex", code=2),
        InInterval(column="pay", low=0.0, high=4954.350870919409),
        InInterval(column="age", low=0, high=64.50770429955354),
    )
    (drawn,) = Ranges(type="ranges", k=2, count=1, seed=1).conjunctions(SCHEMA)
    assert drawn == (
        HasCode(column="sex", code=2),
        InInterval(column="pay", low=2550.690257394217, high=4954.350870919409),
    )


def test_names_tell_blocks_apart() -> None:
    items: list[WorkloadItem] = [
        Prefixes(type="prefixes", count=5, seed=1),
        Prefixes(type="prefixes", count=5, seed=2),
        Prefixes(type="prefixes", count=6, seed=1),
        Prefixes(type="prefixes", count=5, seed=1, numeric=1),
        Prefixes(type="prefixes", count=5, seed=1, categorical=2),
        Ranges(type="ranges", count=5, seed=1, k=2),
        Ranges(type="ranges", count=5, seed=1, k=3),
        ranges({"sex": "F"}),
        ranges({"sex": "M"}),
        Halfspaces(type="halfspaces", count=5, seed=1),
        Halfspaces(type="halfspaces", count=5, seed=2),
    ]
    assert len(expand([*items, *items], SCHEMA)) == len(items)


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "binary_tree"},
        {"type": "binary_tree", "k": 2, "attributes": [["age"]]},
        {"type": "binary_tree", "k": 0},
        {"type": "binary_tree", "k": 2, "levels": 0},
        {"type": "binary_tree", "k": 2, "levels": 17},
        {"type": "binary_tree", "attributes": [[]]},
        {"type": "ranges"},
        {"type": "ranges", "k": 2, "count": 5},
        {"type": "ranges", "k": 2, "seed": 5},
        {"type": "ranges", "queries": []},
        {"type": "ranges", "queries": [{}]},
        {"type": "ranges", "queries": [{"age": [1]}]},
        {"type": "ranges", "queries": [{"age": [1, 2, 3]}]},
        {"type": "ranges", "queries": [{"age": [1, math.inf]}]},
        {"type": "ranges", "queries": [{"age": 1}]},
        {"type": "ranges", "queries": [{"age": [1, 2]}], "k": 1},
        {"type": "ranges", "queries": [{"age": [1, 2]}], "k": 1, "count": 1, "seed": 1},
        {"type": "ranges", "queries": [{f"c{i}": "a" for i in range(11)}]},
        {"type": "prefixes", "count": 5},
        {"type": "prefixes", "seed": 5},
        {"type": "prefixes", "count": 5, "seed": -1},
        {"type": "prefixes", "count": 0, "seed": 1},
        {"type": "prefixes", "count": 1_000_001, "seed": 1},
        {"type": "prefixes", "count": 5, "seed": 1, "numeric": 0},
        {"type": "prefixes", "count": 5, "seed": 1, "numeric": 6, "categorical": 5},
        {"type": "halfspaces", "count": 5},
        {"type": "halfspaces", "count": 5, "seed": 2**53},
        {"type": "halfspaces", "count": 5, "seed": 1, "k": 2},
        {"type": "planes", "count": 5, "seed": 1},
    ],
)
def test_refused_items(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter[Any](Workload).validate_python([fields])


def test_items_survive_json() -> None:
    items = [
        {"type": "binary_tree", "k": 2},
        {"type": "ranges", "queries": [{"sex": "F", "age": [20, 30.5], "pay": None}]},
        {"type": "ranges", "k": 2, "count": 5, "seed": 1},
        {"type": "prefixes", "count": 5, "seed": 1},
        {"type": "halfspaces", "count": 5, "seed": 1},
    ]
    adapter = TypeAdapter[Any](Workload)
    parsed = adapter.validate_python(items)
    assert adapter.validate_json(adapter.dump_json(parsed)) == parsed
    assert isinstance(parsed[0], BinaryTree)
