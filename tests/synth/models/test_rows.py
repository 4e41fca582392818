"""Released rows: exact answers, even repetition, and the way to a file and back."""

import numpy as np
import pytest

from scrim.spec.schema import Schema
from scrim.spec.workload import Marginals, Ranges, WorkloadItem
from synth.models.released import ReleasedModel
from synth.models.rows import Rows
from synth.queries import compile_workload
from synth.table import Chunk, Table, store_numbers

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "colour", "type": "categorical", "values": ["r", "g"], "other": "g"},
            {"name": "person", "type": "identifier"},
            {"name": "age", "type": "integer", "lower": 0, "upper": 999, "bins": {"width": 500}},
            {"name": "price", "type": "real", "lower": -1.0, "upper": 1.0, "decimals": 2},
        ]
    }
)
SIZE = 7
ROWS = Rows(
    SCHEMA,
    store_numbers(
        SCHEMA,
        {
            "colour": np.array([0, 1, 2, 0, 1, 1, 2]),
            "age": np.array([0, 999, np.nan, 500, 499, 17, 3]),
            "price": np.array([-1, 1, 0.25, np.nan, 0.5, 0.33, 0]),
        },
    ),
)
RNG = 5


def ages(chunk: Chunk) -> list[int]:
    """The ages, which identify the rows."""
    return [int(age) for age in chunk["age"]]


def test_answers_are_shares_of_the_rows() -> None:
    workload: list[WorkloadItem] = [
        Marginals(type="marginals", attributes=[["colour", "age"]]),
        Ranges(type="ranges", queries=[{"price": [0.0, 0.5]}, {"age": None, "colour": None}]),
    ]
    answers = ROWS.answer(compile_workload(workload, SCHEMA))
    cells = [1, 1, 0, 2, 1, 0, 1, 0, 1]
    np.testing.assert_array_equal(answers.values, np.array([*cells, 3, 1]) / SIZE)
    assert answers.standard_errors is None


class TestSample:
    def test_its_own_number_gives_every_row_once_in_another_order(self) -> None:
        drawn = ages(ROWS.sample(SIZE, np.random.default_rng(RNG)))
        assert sorted(drawn) == sorted(ages(ROWS.chunk))
        assert drawn != ages(ROWS.chunk)

    @pytest.mark.parametrize("rows", [1, 3, 6, 8, 14, 100, 1001])
    def test_any_other_number_repeats_rows_evenly(self, rows: int) -> None:
        for seed in range(20):
            drawn = ages(ROWS.sample(rows, np.random.default_rng(seed)))
            assert len(drawn) == rows
            times = [drawn.count(age) for age in ages(ROWS.chunk)]
            assert sum(times) == rows
            assert set(times) <= {rows // SIZE, -(-rows // SIZE)}

    def test_the_cells_of_a_row_stay_together(self) -> None:
        together = zip(*(ROWS.chunk[name].tolist() for name in ("colour", "age")), strict=True)
        drawn = ROWS.sample(50, np.random.default_rng(RNG))
        found = zip(*(drawn[name].tolist() for name in ("colour", "age")), strict=True)
        assert set(found) == set(together)

    def test_the_same_seed_draws_the_same(self) -> None:
        drawn = [ages(ROWS.sample(20, np.random.default_rng(seed))) for seed in (1, 1, 2)]
        assert drawn[0] == drawn[1] != drawn[2]

    def test_values_are_stored_ones_of_every_declared_column(self) -> None:
        drawn = ROWS.sample(20, np.random.default_rng(RNG))
        [chunk] = Table(SCHEMA, [drawn]).chunks()
        assert {name: chunk[name].dtype for name in chunk} == {
            name: column.dtype for name, column in ROWS.chunk.items()
        }


def test_a_file_holds_the_same_rows() -> None:
    read = ReleasedModel.from_bytes(ReleasedModel(SCHEMA, 1234, ROWS).to_bytes())
    assert read.estimated_rows == 1234
    assert isinstance(read.model, Rows)
    assert read.model.chunk.keys() == ROWS.chunk.keys()
    for name, column in ROWS.chunk.items():
        np.testing.assert_array_equal(read.model.chunk[name], column)
        assert read.model.chunk[name].dtype == column.dtype
    assert ages(read.sample(30, seed=3)) == ages(ReleasedModel(SCHEMA, 1, ROWS).sample(30, seed=3))
