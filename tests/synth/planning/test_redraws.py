"""The stated cost of further sets of rows, beside what they really take."""

import io
from typing import Any

import numpy as np
import pytest

from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema
from synth.planning.choice import resolve
from synth.planning.plan import plan
from synth.planning.redraws import RedrawCost
from synth.table import draw_values, write_csv, write_parquet
from tests.support import ADD_REMOVE, release

ROWS = 5000
SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "town", "type": "categorical", "values": ["Aix", "Bad Homburg", "Celle"]},
            {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}},
            {"name": "pay", "type": "real", "lower": 0, "upper": 1, "bins": {"count": 4}},
        ]
    }
)


def cost(draws: int, **outputs: Any) -> RedrawCost | None:
    spec = release({"name": "mwem"}, outputs={"rows": ROWS, "draws": draws, **outputs})
    return plan(spec, SCHEMA, ADD_REMOVE, 10**11).redraws


@pytest.mark.parametrize("formats", [["csv"], ["parquet"], ["csv", "parquet"]])
def test_storage_is_about_what_the_files_take(formats: list[str]) -> None:
    rng = np.random.default_rng(0)
    codes = {c.name: rng.integers(c.size, size=ROWS) for c in SCHEMA.attributes}
    rows, size = draw_values(SCHEMA, codes, rng), 0
    for format_ in formats:
        file = io.BytesIO()
        (write_csv if format_ == "csv" else write_parquet)(file, SCHEMA, [rows])
        size += len(file.getvalue())
    found = cost(3, formats=formats)
    assert found is not None
    assert found.storage_bytes == pytest.approx(3 * size, rel=0.35)


def test_one_set_costs_nothing() -> None:
    assert cost(1) is None
    found = cost(20)
    assert found is not None and (found.sets, found.fits) == (20, 21)


def test_what_stays_in_memory_counts() -> None:
    """The fit and the rows fit alone, but not beside the first model and its rows."""
    spec = release({"name": "mwem"}, outputs={"rows": ROWS})
    peak = plan(spec, SCHEMA, ADD_REMOVE, 10**11).peak_bytes
    assert peak is not None
    resolve(spec, SCHEMA, ADD_REMOVE, 1e-9, memory_bytes=peak)
    further = release({"name": "mwem"}, outputs={"rows": ROWS, "draws": 2})
    with pytest.raises(
        SpecError, match=r"the first model and its rows stay in memory.*outputs\.draws"
    ):
        resolve(further, SCHEMA, ADD_REMOVE, 1e-9, memory_bytes=peak)
