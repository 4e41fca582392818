"""What the rows can be used for: relations, categories and distinct rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scrim.spec.schema import Schema
from synth.basis import MeasuredQueries
from synth.domain import Domain
from synth.models.error_bars import ErrorBars, MeasuredBlock
from synth.queries import Marginal
from synth.run import FinishedRelease
from synth.table import draw_values
from tests.support import coded_schema, release
from tests.worker.report.support import Page, about, made_release
from worker.report import render
from worker.report.fitness import distinct_rows, fitness, relation_map, shade_of

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2}
SCHEMA = coded_schema(SIZES)
SPEC = release({"name": "mwem"})
ROWS = 400


def judged(sigma: float = 2.0, schema: Schema = SCHEMA) -> FinishedRelease:
    """Measured were a with b, and b with c; the category 3 of c is empty."""
    made = made_release(schema, SPEC, rows=ROWS)
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(size, size=ROWS) for name, size in SIZES.items()}
    codes["c"] %= 3
    domain = Domain.of(schema)
    pairs = [Marginal.of(names, domain) for names in (("a", "b"), ("b", "c"))]
    bars = ErrorBars(
        rows_sigma=0.0,
        measured=tuple(MeasuredBlock(p.name, p.attributes, p.size, sigma, "table") for p in pairs),
        pairs=(("a", "b"), ("b", "c")),
        parts=(),
    )
    model = replace(made.model, measured=MeasuredQueries.of(pairs), error_bars=bars)
    return replace(made, model=model, rows=draw_values(schema, codes, rng))


def test_the_basis_and_the_error_of_every_pair() -> None:
    found = fitness(judged())
    assert found is not None
    of = {(found.names[r.first], found.names[r.second]): r for r in found.relations}
    assert {pair: relation.basis for pair, relation in of.items()} == {
        ("a", "b"): "measured",
        ("b", "c"): "measured",
        ("a", "c"): "model",
        **dict.fromkeys([("a", "d"), ("b", "d"), ("c", "d")], "independent"),
    }
    assert of["a", "b"].error < 0.03 < 0.1 < of["a", "c"].error
    assert found.bases == {"measured": 2, "model": 1, "independent": 3}
    assert {r.basis for r in found.worst_measured(9)} == {"measured"}


def test_the_error_is_the_expected_total_variation() -> None:
    """Six cells with about 67 rows each, measured with normal noise of 2 rows."""
    found = fitness(judged(sigma=2.0))
    assert found is not None
    (measured,) = (r for r in found.relations if (r.first, r.second) == (0, 1))
    # 0.5 * 6 cells * sqrt(2/pi) * 1.15 * 2 rows / 400 rows, slightly shrunk, with half a row in quadrature.
    assert measured.error == pytest.approx(0.0140, rel=0.05)
    noisier = fitness(judged(sigma=4.0))
    assert noisier is not None
    assert noisier.relations[0].error == pytest.approx(2 * measured.error, rel=0.1)


def test_categories_below_their_noise() -> None:
    found = fitness(judged())
    assert found is not None and found.categories is not None
    (below,) = found.categories
    assert (below.column, below.number, below.of, below.names) == ("c", 1, 4, ["[3, 3]"])
    everything = fitness(judged(sigma=500.0))
    assert everything is not None and everything.categories is not None
    assert {each.column for each in everything.categories} >= {"a", "b", "c"}


def test_distinct_rows_are_counted_exactly() -> None:
    schema = Schema.model_validate(
        {
            "columns": [
                {"name": "x", "type": "integer", "lower": 0, "upper": 300},
                {"name": "y", "type": "real", "lower": 0, "upper": 1},
            ]
        }
    )
    x, y = np.divmod(np.arange(30_000), 100)
    rows: dict[str, Any] = {"x": x.astype(np.uint16), "y": y / 100}
    assert distinct_rows(rows, schema) == 30_000
    twice = {name: np.concatenate([column, column]) for name, column in rows.items()}
    assert distinct_rows(twice, schema) == 30_000
    swapped = {"x": np.array([1, 2], np.uint16), "y": np.array([2.0, 1.0])}
    assert distinct_rows(swapped, schema) == 2


def test_the_map_has_a_square_for_what_is_known() -> None:
    found = fitness(judged())
    assert found is not None
    drawn = str(relation_map(found))
    squares = drawn.count("z")
    assert squares == 3 and all(name in drawn for name in found.names)
    assert (shade_of(0.0), shade_of(0.15), shade_of(0.9)) == (0, 5, 10)


def test_the_page_says_how_to_use_the_rows() -> None:
    made = judged()
    page = Page(render(made, about(SPEC))).text
    assert "outputs.draws" in page and "synthetic_1.csv" not in page
    assert "of the 400 released rows are distinct" in page
    spec = release({"name": "mwem"}, outputs={"rows": ROWS, "draws": 7})
    page = Page(render(made, about(spec))).text
    assert "7 further sets of rows" in page and "u × 400 / 400 + D" in page


def test_models_without_error_bars_state_no_errors() -> None:
    found = fitness(made_release(SCHEMA, SPEC))
    assert found is not None and found.relations == [] and found.categories is None
    assert fitness(replace(made_release(SCHEMA, SPEC), rows=None)) is None
