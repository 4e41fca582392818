"""The door without rows: counts of a model with simulated noise, and everything else as recorded."""

import numpy as np
import pytest

from synth.journal import JournalMismatch, Operation
from synth.queries import QuerySet
from synth.queries.marginal import Marginal
from synth.simulated_door import SimulatedDoor
from tests.support import ADD_REMOVE

CELLS = 4000
TABLE = Marginal(("a",), (CELLS,))
OTHER = Marginal(("b",), (CELLS,))
COUNTS = np.full(CELLS, 70.25)
ROWS = Operation("rows", "", 3.0, 5, np.array([1000]))
SCREEN = Operation("best_mixture", "", 3.0, 1000, np.array([1]))
SELECT = Operation("select", "1 of 2 marginals", 2.0, 7, np.array([1]))
MEASURE = Operation("measure", "a", 12.0, 11, np.full(CELLS, 5))
PUBLIC = Operation("measure", "a", 0.0, 0, np.arange(CELLS))


def door(*operations: Operation, seed: int = 1) -> SimulatedDoor:
    return SimulatedDoor(
        operations,
        protection=ADD_REMOVE,
        rows=500,
        counts=[COUNTS for each in operations if each.kind == "measure"],
        random=np.random.default_rng(seed),
    )


def test_counts_are_those_of_the_model_with_noise_of_the_recorded_scale() -> None:
    found = door(MEASURE).measure(TABLE, budget=0)
    assert found.values.dtype == np.int64 and found.sigma == 12.0
    # The seed is fixed. A scale that is 10% off would be nine standard errors away.
    assert found.values.mean() == pytest.approx(70.25, abs=0.6)
    assert found.values.std() == pytest.approx(12.0, rel=0.04)


def test_a_public_count_is_the_recorded_one() -> None:
    assert door(PUBLIC).measure(TABLE, budget=0).values.tolist() == list(range(CELLS))


def test_the_number_of_rows_has_noise_as_well() -> None:
    found = [door(ROWS, seed=seed).count_rows(budget=0).value for seed in range(400)]
    assert np.mean(found) == pytest.approx(500, abs=0.6)
    assert np.std(found) == pytest.approx(3.0, rel=0.15)


def test_selections_and_prices_are_the_recorded_ones() -> None:
    replay = door(SCREEN, ROWS, SELECT, MEASURE)
    replay.count_rows(budget=0)
    assert replay.select(QuerySet([OTHER, TABLE]), COUNTS, budget=0) == [1]
    assert replay.used == 12 and replay.spent == 1023
    with pytest.raises(JournalMismatch, match="1 more operations"):
        replay.close()
    replay.measure(TABLE, budget=0)
    replay.close()


def test_another_question_is_refused() -> None:
    with pytest.raises(JournalMismatch, match="holds measure a, not b"):
        door(MEASURE).measure(OTHER, budget=0)
    with pytest.raises(JournalMismatch, match="holds select, not measure"):
        door(SELECT).measure(TABLE, budget=0)
    with pytest.raises(JournalMismatch, match="holds nothing more, not rows"):
        door().count_rows(budget=0)
