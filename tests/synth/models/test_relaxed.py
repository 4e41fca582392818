"""Rows with soft edges: always distributions, and ordinary rows as their edges harden."""

import numpy as np
import pytest
import torch

from scrim.spec.schema import Schema
from scrim.spec.workload.conditions import numeric_columns
from synth.models.relaxed import RelaxedRows
from synth.queries.reading import Reading

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "sex", "type": "categorical", "values": ["F", "M"], "other": "M"},
            {"name": "age", "type": "integer", "lower": 0, "upper": 10, "nullable": False},
            {"name": "pay", "type": "real", "lower": -10.0, "upper": 10.0, "bins": {"count": 5}},
        ]
    }
)


def new_rows(temperature: float) -> RelaxedRows:
    return RelaxedRows(
        SCHEMA,
        {"sex": torch.tensor([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])},
        {"age": torch.tensor([0.3, 1.0]), "pay": torch.tensor([0.0, 0.55])},
        {"pay": torch.tensor([[0.25], [0.0]])},
        temperature,
    )


def readings() -> list[Reading]:
    sex, numbers = SCHEMA.attribute("sex"), numeric_columns(SCHEMA)
    age, pay = numbers["age"], numbers["pay"]
    levels = [
        Reading.at_level(age.line, 3),
        Reading.at_level(age.line, 5),
        Reading.at_level(pay.line, 2),
    ]
    return [Reading.of(sex), Reading.of(pay), *levels]


@pytest.mark.parametrize("temperature", [0.1, 1.0, 100.0, 1e6])
def test_each_reading_is_a_distribution(temperature: float) -> None:
    mixture = new_rows(temperature).mixture(readings())
    for reading in readings():
        shares = mixture.columns([reading.name])
        assert shares.shape == (2, reading.size)
        assert (shares >= 0).all()
        torch.testing.assert_close(shares.sum(1), torch.ones(2))
    torch.testing.assert_close(mixture.columns(["pay"])[:, -1], torch.tensor([0.25, 0.0]))


def test_hard_edges_put_all_on_one_cell() -> None:
    mixture = new_rows(1e5).mixture(readings())
    pay = [[0.75, 0, 0, 0, 0, 0.25], [0, 0, 1, 0, 0, 0]]
    torch.testing.assert_close(mixture.columns(["pay"]), torch.tensor(pay))


def test_coarser_levels_are_sums_of_finer_ones() -> None:
    rows = new_rows(7.0)
    age = numeric_columns(SCHEMA)["age"]
    coarse, fine = Reading.at_level(age.line, 2), Reading.at_level(age.line, 3)
    mixture = rows.mixture([coarse, fine])
    merged = mixture.columns([fine.name]).reshape(2, 4, 2).sum(2)
    torch.testing.assert_close(mixture.columns([coarse.name]), merged)


def test_below_is_a_sigmoid_of_the_distance_times_the_temperature() -> None:
    rows = new_rows(3.0)
    below = rows.below("pay", np.array([-12.0, -10.0, 5.0, 10.0, 11.0]))
    at_five, at_ten = (
        torch.sigmoid(3 * torch.tensor([0.75, 0.2])),
        torch.sigmoid(3 * torch.tensor([1.0, 0.45])),
    )
    there, nothing = torch.tensor([0.75, 1.0]), torch.zeros(2)
    expected = torch.stack([nothing, nothing, at_five * there, at_ten * there, there], dim=1)
    torch.testing.assert_close(below, expected)


def test_whole_numbers_are_told_apart_halfway_between_them() -> None:
    """A place is rounded to the nearest whole number, and must be counted as that."""
    places = torch.tensor([0.26, 0.34, 0.36, 0.44])
    rows = RelaxedRows(SCHEMA, {}, {"age": places, "pay": places}, {}, 1e4)
    below_four = rows.below("age", np.array([4.0]))[:, 0]
    np.testing.assert_allclose(below_four.numpy(), np.rint(10 * places.numpy()) < 4, atol=1e-6)


def test_intervals_are_differences_of_what_is_below() -> None:
    rows = new_rows(5.0)
    low, high = torch.tensor([-torch.inf, 0.25]), torch.tensor([0.5, torch.inf])
    between = rows.between(torch.tensor([1, 1]), low, high)
    below = rows.below("pay", np.array([-5.0, 0.0, 20.0]))
    expected = torch.stack([below[:, 1], below[:, 2] - below[:, 0]])
    torch.testing.assert_close(between, expected)


def test_coordinates_weigh_places_by_how_likely_they_are_there() -> None:
    coordinates = new_rows(1.0).coordinates
    expected = [[0.2, 1], [0.3, 0], [0.5, 0], [0.3, 1], [0, 0], [0, 0.55], [0.25, 0]]
    torch.testing.assert_close(coordinates, torch.tensor(expected))
