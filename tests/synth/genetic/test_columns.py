"""Random values of columns, and places between cuts."""

from typing import Any

import numpy as np
import pytest
from numba import njit

from scrim.spec.schema import Schema
from synth.genetic.columns import MISSING_SHARE, Columns, draw_value, new_columns, place_of
from synth.table import Table, store_numbers
from tests.synth.genetic.problems import SCHEMA, Floats

LIMIT = 2**53
EXTREMES = Schema.model_validate(
    {
        "columns": [
            {"name": "wide", "type": "integer", "lower": -LIMIT, "upper": LIMIT},
            {"name": "one", "type": "integer", "lower": 7, "upper": 7, "nullable": False},
            {"name": "tiny", "type": "real", "lower": 1.0, "upper": 1.0000000001},
            {"name": "thirds", "type": "real", "lower": -1 / 3, "upper": 1 / 3, "decimals": 2},
            {"name": "whole", "type": "real", "lower": -0.4, "upper": 3.9, "decimals": 0},
            {"name": "coarse", "type": "real", "lower": -1e17, "upper": 1e17, "decimals": 3},
            {"name": "lonely", "type": "categorical", "values": ["x"], "other": "x"},
        ]
    }
)


@njit()
def draw_compiled(columns: Columns, values: Floats, rng: np.random.Generator) -> None:
    """Mutations of every cell."""
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            values[row, column] = draw_value(columns, column, rng)


@njit()
def place_compiled(columns: Columns, values: Floats, places: Any) -> None:
    """The place of every cell."""
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            places[row, column] = place_of(columns, column, values[row, column])


def draw(schema: Schema, rows: int, *, compiled: bool) -> Floats:
    columns, rng = new_columns(schema, {}), np.random.default_rng(3)
    if not compiled:
        return columns.draw(rows, rng)
    values = np.zeros((rows, len(schema.attributes)))
    draw_compiled(columns, values, rng)
    return values


@pytest.mark.parametrize("compiled", [False, True], ids=["first rows", "mutations"])
class TestDrawing:
    @pytest.mark.parametrize("schema", [SCHEMA, EXTREMES], ids=["usual", "extreme"])
    def test_values_are_stored_as_they_are(self, schema: Schema, compiled: bool) -> None:
        values = draw(schema, 3000, compiled=compiled)
        names = [column.name for column in schema.attributes]
        chunk = store_numbers(schema, dict(zip(names, values.T, strict=True)))
        [(_, numbers)] = Table(schema, [chunk]).read(codes=(), numbers=names)
        for column, name in enumerate(names):
            # Where floats are coarser than the decimals, small numbers are rounded when stored.
            tolerance = 1e-3 if name == "coarse" else 0
            np.testing.assert_allclose(values[:, column], numbers[name], rtol=0, atol=tolerance)

    def test_every_value_comes_up_about_equally_often(self, compiled: bool) -> None:
        values = draw(SCHEMA, 40_000, compiled=compiled)
        for column, size in ((0, 4), (1, 2), (2, 100), (3, 8), (4, 251)):
            numbers = values[:, column]
            found, times = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
            expected = times.sum() / size
            assert len(found) == size
            # Six standard deviations: less than one false alarm in a million runs.
            assert np.abs(times - expected).max() < 6 * np.sqrt(expected) + 1
        assert 0 <= values[:, 5].min() < 0.001 and 0.999 < values[:, 5].max() <= 1

    def test_missing_where_it_may_be(self, compiled: bool) -> None:
        missing = np.isnan(draw(SCHEMA, 20_000, compiled=compiled)).mean(axis=0)
        assert missing[[0, 1, 3, 5]].tolist() == [0, 0, 0, 0]
        np.testing.assert_allclose(missing[[2, 4]], MISSING_SHARE, atol=0.015)


class TestPlaces:
    def test_a_place_is_how_many_cuts_are_not_above(self) -> None:
        columns = new_columns(SCHEMA, {"age": {25.0, 50.5}, "place": {0.25, 1.0}})
        ages = np.array([0, 24, 25, 50, 51, 99, np.nan])
        places = np.array([0.0, 0.25, 0.3, np.nextafter(1, 0), 1.0, 0.2, 0.9])
        values = np.zeros((7, 6))
        values[:, 0], values[:, 2], values[:, 5] = [3, 2, 1, 0, 0, 0, 0], ages, places
        found = columns.places(values)
        assert found[:, 0].tolist() == [3, 2, 1, 0, 0, 0, 0]
        assert found[:, 2].tolist() == [0, 0, 1, 1, 2, 2, 3]
        assert found[:, 5].tolist() == [0, 1, 1, 1, 2, 0, 1]

    def test_compiled_code_tells_the_same(self) -> None:
        rng = np.random.default_rng(1)
        cuts = {"age": set(rng.uniform(0, 99, 30)), "price": {0.1, 0.2, 0.3}, "place": {0.5}}
        columns = new_columns(SCHEMA, cuts)
        values = columns.draw(2000, rng)
        found = np.zeros(values.shape, np.int64)
        place_compiled(columns, values, found)
        np.testing.assert_array_equal(found, columns.places(values))


def test_categories_alone_have_the_types_of_all_columns() -> None:
    """Code is compiled once per combination of types, which takes seconds."""
    categories = Schema(columns=[EXTREMES.attributes[-1]])
    types = [[part.dtype for part in new_columns(each, {})] for each in (categories, SCHEMA)]
    assert types[0] == types[1]
