"""Values are drawn by the shape of bins, and never leave them."""

import numpy as np
import pytest

from scrim.spec.columns import Bins, BinShape, IntegerColumn, RealColumn
from synth.table.encoding import attribute_codec, draw_column

SHAPE = BinShape(edges=[0.0, 1.0, 10.0, 20.0, 99.0], weights=[3, 1, 0, 0])
BINS = Bins(edges=[0.0, 10.0, 99.0], shape=SHAPE)
COLUMNS = [
    IntegerColumn(name="x", type="integer", lower=0, upper=99, bins=BINS),
    RealColumn(name="x", type="real", lower=0, upper=99, bins=BINS),
    RealColumn(name="x", type="real", lower=0, upper=99, decimals=1, bins=BINS),
]


@pytest.mark.parametrize("column", COLUMNS, ids=["integer", "real", "decimals"])
def test_weights_decide_inside_a_bin(column: IntegerColumn | RealColumn) -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 4000)
    codec = attribute_codec(column)
    drawn = draw_column(column, codes, rng)
    numbers = codec.numbers(drawn)
    assert np.array_equal(codec.discretise(drawn), codes)
    assert np.isnan(numbers[8000:]).all()
    assert (numbers[:4000] < 1).mean() == pytest.approx(0.75, abs=0.05)
    # A bin whose weights are all zero is divided by width: 10 of 89.
    assert (numbers[4000:8000] < 20).mean() == pytest.approx(0.115, abs=0.03)


@pytest.mark.parametrize("column", COLUMNS, ids=["integer", "real", "decimals"])
def test_special_values_are_released_exactly_and_nowhere_else(
    column: IntegerColumn | RealColumn,
) -> None:
    special = column.model_copy(update={"special": [0, 50, 99]})
    assert special.edges[-2:] == (99.0, 99.0)
    codec = attribute_codec(special)
    codes = np.arange(special.size).repeat(500)
    drawn = draw_column(special, codes, np.random.default_rng(1))
    numbers = codec.numbers(drawn)
    assert np.array_equal(codec.discretise(drawn), codes)
    for value in (0, 50, 99):
        place = special.edges.index(value)
        assert ((numbers == value) == (codes == place)).all()
