"""Which intervals consist of bins, so that models of discrete cells can answer them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.spec.columns import Bins, IntegerColumn, RealColumn
from scrim.spec.workload import Halfspaces, Prefixes, Ranges
from scrim.spec.workload.bins import BinStarts, has_bin_for_each_number
from tests.scrim.spec.test_number_queries import AGE, PAY, SCHEMA, SEX, new_schema, ranges


@pytest.mark.parametrize(
    ("asked", "column"),
    [
        (ranges({"age": [20, 30]}, {"age": [90, 99]}, {"sex": "F"}, {"age": None}), None),
        (ranges({"age": [19.5, 30]}), None),
        (ranges({"age": [20, 30]}, {"age": [25, 30]}), "age"),
        (ranges({"age": [20, 35]}), "age"),
        (ranges({"pay": [0, 1e4]}), "pay"),
        (Ranges(type="ranges", k=1, count=5, seed=1), "pay"),
        (Prefixes(type="prefixes", count=5, seed=1), "age"),
    ],
)
def test_intervals_must_consist_of_bins(asked: Any, column: str | None) -> None:
    (group,) = asked.expand(SCHEMA)
    problem = group.unaligned(SCHEMA)
    if column is None:
        assert problem is None
    else:
        assert problem is not None
        assert f"an interval of column {column!r} ends inside one of its bins" in problem
        assert "declare bins with an edge wherever an interval ends" in problem


def test_random_intervals_are_not_listed_to_find_out(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = new_schema(SEX, {**AGE, "bins": {"width": 1}}, {**PAY, "bins": {"count": 7}})
    monkeypatch.delattr(Ranges, "conjunctions")
    monkeypatch.delattr(Prefixes, "conjunctions")
    (drawn,) = Ranges(type="ranges", k=2, count=1_000_000, seed=1).expand(schema)
    assert drawn.unaligned(schema) is None
    whole = new_schema(SEX, {**AGE, "bins": {"width": 1}})
    (prefixes,) = Prefixes(type="prefixes", count=1_000_000, seed=1, numeric=1).expand(whole)
    assert prefixes.unaligned(whole) is None


def test_no_bins_answer_halfspaces() -> None:
    (group,) = Halfspaces(type="halfspaces", count=5, seed=1).expand(SCHEMA)
    assert group.attributes == ("sex", "age", "job", "pay")
    assert (group.size(SCHEMA), group.is_whole) == (5, False)
    problem = group.unaligned(SCHEMA)
    assert problem is not None and "use a mechanism that needs no bins" in problem


BINS = st.one_of(
    st.builds(Bins, width=st.integers(1, 8).map(float)),
    st.builds(Bins, count=st.integers(1, 12)),
    st.just(Bins(edges=[-3.0, 0.0, 1.0, 9.0])),
)
ENDS = st.one_of(st.integers(-3, 9).map(float), st.floats(-3, 9))


@given(BINS, st.tuples(ENDS, ENDS).map(sorted), st.booleans())
def test_bins_of_an_interval_hold_the_same_numbers(
    bins: Bins, ends: list[float], is_whole: bool
) -> None:
    column: IntegerColumn | RealColumn = (
        IntegerColumn(name="x", type="integer", lower=-3, upper=9, bins=bins)
        if is_whole
        else RealColumn(name="x", type="real", lower=-3.0, upper=9.0, bins=bins)
    )
    low, high = ends
    span = BinStarts(column).span(low, high)
    starts = column.edges[:-1]
    near = [math.nextafter(end, towards) for end in (*ends, *starts) for towards in (-9, 9)]
    numbers = [*range(-3, 10)] if is_whole else [*starts, *ends, *near, 9.0]
    inside = {
        number
        for number in numbers
        if -3 <= number <= 9 and (low <= number < high or number == high == 9)
    }
    bin_of = {x: sum(start <= x for start in starts) - 1 for x in numbers if -3 <= x <= 9}
    if span is not None:
        assert inside == {x for x, found in bin_of.items() if span[0] <= found < span[1]}
    else:
        outside = bin_of.keys() - inside
        assert {bin_of[x] for x in inside} & {bin_of[x] for x in outside}
        assert not has_bin_for_each_number(column)
