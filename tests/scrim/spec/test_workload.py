"""Workload items: which marginals they stand for."""

from itertools import combinations
from math import comb
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from scrim.spec.columns import Bins, IdentifierColumn, IntegerColumn
from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema
from scrim.spec.workload import MAX_BLOCKS, Marginals, Workload


def schema_of(columns: int) -> Schema:
    """Columns c0, c1, ..., and an identifier, which is never queried."""
    attributes = [
        IntegerColumn(name=f"c{i}", type="integer", lower=0, upper=1, bins=Bins(width=1))
        for i in range(columns)
    ]
    return Schema(columns=[*attributes, IdentifierColumn(name="pid", type="identifier")])


def marginals(**fields: Any) -> Marginals:
    return Marginals(type="marginals", **fields)


def expanded(item: Marginals, schema: Schema) -> list[tuple[str, ...]]:
    """The columns of each block."""
    return [block.attributes for block in item.expand(schema)]


def test_all_marginals_of_an_order() -> None:
    names = ["c0", "c1", "c2", "c3"]
    assert expanded(marginals(k=2), schema_of(4)) == list(combinations(names, 2))


def test_named_marginals_come_in_the_order_of_the_schema_and_once() -> None:
    item = marginals(attributes=[["c2", "c0"], ["c1"], ["c0", "c2"]])
    assert expanded(item, schema_of(3)) == [("c0", "c2"), ("c1",)]


@given(st.integers(1, 8), st.data())
def test_a_random_choice_is_of_distinct_marginals(columns: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, columns))
    count = data.draw(st.integers(1, comb(columns, k)))
    seed = data.draw(st.integers(0, 2**53 - 1))
    schema = schema_of(columns)
    chosen = marginals(k=k, count=count, seed=seed).expand(schema)
    assert len(set(chosen)) == count
    assert set(chosen) <= set(marginals(k=k).expand(schema))
    assert chosen == marginals(k=k, count=count, seed=seed).expand(schema)


def test_every_marginal_can_be_chosen() -> None:
    schema = schema_of(5)
    chosen = [marginals(k=2, count=3, seed=seed).expand(schema) for seed in range(200)]
    assert {marginal for some in chosen for marginal in some} == set(marginals(k=2).expand(schema))


def test_a_choice_among_more_than_can_be_counted_in_64_bits() -> None:
    chosen = marginals(k=10, count=1000, seed=1).expand(schema_of(999))
    assert len(set(chosen)) == 1000
    assert all(len(set(block.attributes)) == 10 for block in chosen)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (marginals(k=4), "4-way marginals need 4 columns; the schema has 3"),
        (marginals(k=2, count=4, seed=0), "there are only 3"),
        (marginals(attributes=[["c0", "age"]]), "no column 'age' to query; it has c0, c1, c2"),
        (marginals(attributes=[["pid"]]), "no column 'pid'"),
        (marginals(attributes=[["c0", "c0"]]), "same column is named twice"),
    ],
)
def test_what_the_schema_cannot_answer(item: Marginals, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        item.expand(schema_of(3))


def test_too_many_marginals_name_the_way_out() -> None:
    assert comb(999, 2) > MAX_BLOCKS
    with pytest.raises(SpecError, match="give count and seed, or attributes"):
        marginals(k=2).expand(schema_of(999))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"k": 0},
        {"k": 11},
        {"k": "3"},
        {"k": True},
        {"k": 2.0},
        {"k": 1, "attributes": [["a"]]},
        {"k": 1, "count": 2},
        {"k": 1, "seed": 2},
        {"attributes": [["a"]], "count": 1, "seed": 1},
        {"attributes": []},
        {"attributes": [[]]},
        {"attributes": [["a"] * 11]},
        {"k": 1, "count": 1, "seed": -1},
        {"k": 1, "count": 1, "seed": 2**53},
        {"k": 1, "count": 0, "seed": 1},
        {"k": 1, "weight": 1},
    ],
)
def test_refused_items(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Marginals.model_validate({"type": "marginals", **fields})


@pytest.mark.parametrize("items", [[], [{"k": 1}], [{"type": "ranges", "k": 1}], {"k": 1}])
def test_refused_workloads(items: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter[Any](Workload).validate_python(items)
