"""T4 for the grids of adaptive bins: no neighbour moves them by more than their price covers."""

from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.workload.grid import GridBlock
from synth.journal import MemoryJournal
from synth.privacy import noise
from synth.privacy.vault import Vault
from synth.queries import compile_blocks
from synth.table import Table, store_numbers
from tests.support import PROTECTIONS
from tests.synth.privacy.test_sensitivity import Recorder, neighbours

LEVELS = {30: 1, 100: 2, 5000: 3}
"""Upper bounds of the column, and how many levels its grid has."""


def schema_of(upper: int) -> Schema:
    column = {"name": "x", "type": "integer", "lower": 0, "upper": upper, "bins": {"adaptive": 4}}
    return Schema.model_validate({"columns": [column]})


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: f"{p.unit}-{p.relation}")
@pytest.mark.parametrize("upper", LEVELS)
def test_no_neighbour_moves_a_grid_by_more_than_its_price_covers(
    upper: int, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = schema_of(upper)
    (grid,) = compile_blocks([GridBlock(("x",))], schema).blocks
    values = (0.0, 1.0, float(upper), float("nan"))
    recorder = Recorder()
    monkeypatch.setattr(noise, "gaussian", recorder.gaussian)

    @cache
    def entering(rows: tuple[int, ...]) -> np.ndarray:
        numbers = {"x": np.array([values[row] for row in rows])}
        table = Table(schema, [store_numbers(schema, numbers)])
        journal = MemoryJournal()
        Vault(table, protection=protection, budget=0, journal=journal).measure(grid, budget=1)
        return recorder.values.pop()

    moves = [
        int(((entering(tuple(sorted(other))) - entering(rows)) ** 2).sum())
        for n in range(4)
        for rows in combinations_with_replacement(range(len(values)), n)
        for other in neighbours(rows, protection, range(len(values)))
    ]
    assert schema.attributes[0].type == "integer"
    assert len(schema.attributes[0].grid.starts) == LEVELS[upper]
    assert max(moves) == recorder.l2_squared, "covered, and attained"
