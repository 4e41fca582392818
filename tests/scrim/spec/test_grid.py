"""The public grid of a column, special values, and the number of adaptive bins."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from scrim.spec.columns import Bins, BinShape, IntegerColumn, NumberLine, RealColumn
from scrim.spec.columns.grid import grid_of

LINES = st.one_of(
    st.builds(
        lambda low, span: NumberLine(float(low), float(low + span), 0),
        st.integers(-(10**6), 10**6),
        st.integers(1, 10**7),
    ),
    st.builds(
        lambda low, span, decimals: NumberLine(low / 100, (low + span) / 100, decimals),
        st.integers(-(10**4), 10**4),
        st.integers(1, 10**6),
        st.sampled_from([None, 2, 3]),
    ),
)


@given(LINES)
def test_levels_are_partitions_and_each_is_finer_than_the_one_before(line: NumberLine) -> None:
    grid = grid_of(line)
    assert all(level[0] == line.lower for level in grid.starts)
    assert all(level[-1] <= line.upper for level in grid.starts)
    assert all(a < b for level in grid.starts for a, b in pairwise(level))
    assert all(set(coarse) < set(fine) for coarse, fine in pairwise(grid.starts))


def column(upper: float = 100_000, **fields: Any) -> IntegerColumn:
    return IntegerColumn(name="x", type="integer", lower=-1, upper=int(upper), **fields)


@pytest.mark.parametrize("value", [-1, 0, 1, 99, 150, 50_000, 7_700, 100_000])
def test_small_and_round_numbers_and_bounds_have_cells_of_their_own(value: int) -> None:
    starts = column().grid.starts[-1]
    assert value in starts
    assert value == 100_000 or value + 1 in starts


def test_special_values_have_cells_of_their_own_in_the_grid() -> None:
    starts = column(special=[77_777]).grid.starts[-1]
    assert {77_777.0, 77_778.0} <= set(starts)
    real = RealColumn(name="x", type="real", lower=0.0, upper=1.0, special=[0.123456789])
    assert 0.123456789 in real.grid.starts[-1]


def test_the_number_of_adaptive_bins_is_known_before_their_edges() -> None:
    assert column(bins=Bins(adaptive=32)).size == 33
    assert column(bins=Bins(adaptive=32), special=[5, 7]).size == 35
    assert column(bins=Bins(adaptive=32), nullable=False).size == 32
    few = column(upper=10, bins=Bins(adaptive=32))
    assert few.size == 13 and not few.awaits_edges
    assert few.edges == (*map(float, range(-1, 11)), 10.0)
    assert column(bins=Bins(adaptive=32)).awaits_edges


def test_many_special_values_leave_room_for_the_numbers_between_them() -> None:
    crowded = column(bins=Bins(adaptive=2), special=[10, 20, 30])
    # Three special values, and at most four bins around them.
    assert crowded.size - crowded.nullable == 7


def test_a_special_value_divides_the_bin_that_contains_it() -> None:
    binned = column(upper=99, bins=Bins(edges=[-1.0, 50.0, 99.0]), special=[0, 50, 99])
    assert binned.edges == (-1.0, 0.0, 1.0, 50.0, 51.0, 99.0, 99.0)
    assert binned.size == 7
    money = RealColumn(
        name="x", type="real", lower=0, upper=9, decimals=2, bins=Bins(count=3), special=[0.0, 4.5]
    )
    assert money.edges == (0.0, 0.01, 3.0, 4.5, 4.51, 6.0, 9.0)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"special": [-2]}, 'must lie between "lower" and "upper"'),
        ({"special": [3, 3]}, "special lists the same value twice"),
        ({"bins": Bins(adaptive=32), "special": [100_001]}, "must lie between"),
    ],
)
def test_special_values_that_cannot_occur_are_refused(fields: Any, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        column(**fields)
    with pytest.raises(ValidationError, match="more decimals than the column"):
        RealColumn(name="x", type="real", lower=0, upper=1, decimals=1, special=[0.25])


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"adaptive": 8, "count": 8}, "give exactly one of"),
        (
            {"count": 8, "shape": BinShape(edges=[0, 1], weights=[1])},
            "a shape divides bins with edges",
        ),
        ({"edges": [0, 2], "shape": BinShape(edges=[0, 1], weights=[1])}, "must contain all edges"),
        ({"edges": [0, 2], "shape": BinShape(edges=[-1, 0, 2], weights=[1, 1])}, "begin and end"),
        ({"edges": [0, 2, 2, 2]}, "edges must increase"),
    ],
)
def test_bins_that_contradict_themselves_are_refused(fields: Any, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Bins(**fields)
    with pytest.raises(ValidationError, match="one weight for each interval"):
        BinShape(edges=[0, 1, 2], weights=[1])


def test_schemas_without_the_new_fields_are_stored_as_before() -> None:
    stored = column(bins=Bins(count=8)).model_dump(mode="json")
    assert stored["bins"] == {"width": None, "count": 8, "edges": None}
    assert "special" not in stored
