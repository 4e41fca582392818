"""Plots show only released values."""

from itertools import product

import pytest

from scrim.spec.schema import Schema
from service.console.plots import MOST_BARS, plot, plots_of
from service.releases.schemas import ModelAnswer

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {
                "name": "a",
                "type": "categorical",
                "values": ["x", "y"],
                "other": "y",
                "nullable": False,
            },
            {
                "name": "b, c",
                "type": "integer",
                "lower": 0,
                "upper": 2,
                "bins": {"width": 1},
                "nullable": False,
            },
        ]
    }
)


def answer(item: str, query: str, value: float, error: float | None = None) -> ModelAnswer:
    return ModelAnswer(
        item=item,
        query=query,
        value=value,
        count=0,
        standard_error=error,
        count_standard_error=None,
        basis="measured",
    )


def test_one_way_answers_are_shown_as_they_are() -> None:
    (found,) = plots_of([answer("a", "a=x", 0.25, 0.1), answer("a", "a=y", 0.75, 0.1)], SCHEMA)
    assert found.column == "a"
    assert [(bar.label, bar.fraction) for bar in found.bars] == [("x", 0.25), ("y", 0.75)]
    assert [bar.reach for bar in found.bars] == [(17.65, 41.18), (76.47, 100.0)]


def test_others_are_summed() -> None:
    cells = product("xy", ("[0, 1)", "[1, 2)", "[2, 2]"))
    answers = [
        answer('a,"b, c"', f"a={one} & b, c={two}", number / 15)
        for number, (one, two) in enumerate(cells)
    ]
    first, second = plots_of(answers, SCHEMA)
    assert [bar.fraction for bar in first.bars] == pytest.approx([3 / 15, 12 / 15])
    assert [bar.label for bar in second.bars] == ["[0, 1)", "[1, 2)", "[2, 2]"]
    assert [bar.fraction for bar in second.bars] == pytest.approx([3 / 15, 5 / 15, 7 / 15])
    assert all(bar.reach is None for bar in (*first.bars, *second.bars))


def test_what_is_no_whole_marginal_is_not_shown() -> None:
    assert plots_of([answer("a", "a=x", 0.25)], SCHEMA) == []
    assert plots_of([answer("range", "a=x", 0.2), answer("range", "a=y", 0.2)], SCHEMA) == []
    assert plots_of([], SCHEMA) == []


def test_noise_below_zero_has_no_bar() -> None:
    found = plot("a", [("x", -0.1, None), ("y", 1.1, None)])
    assert [bar.width for bar in found.bars] == [0.0, 100.0]
    assert plot("a", [("x", -0.1, None)]).bars[0].width == 0.0


def test_long_columns_are_cut() -> None:
    found = plot("a", [(str(number), 0.01, None) for number in range(100)])
    assert len(found.bars) == MOST_BARS
    assert found.hidden == 100 - MOST_BARS
