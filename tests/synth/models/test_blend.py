"""Blends of a mixture and weighted rows: both parts in their proportion."""

import numpy as np
import pytest
import torch

from synth.domain import Domain
from synth.models.blend import Blend
from synth.models.product import ProductMixture
from synth.models.support import Support
from synth.queries import Marginal, QuerySet
from tests.support import coded_schema, coded_table, random_rows

SIZES = {"a": 2, "b": 3}
SCHEMA = coded_schema(SIZES)
DOMAIN = Domain.of(SCHEMA)
QUERIES = QuerySet([Marginal.of(("a", "b"), DOMAIN)])


def blend(share: float) -> Blend:
    mixture = ProductMixture(DOMAIN, torch.tensor([[0.5, 0.5, 0.2, 0.3, 0.5]]))
    return Blend(mixture, Support.of(coded_table(SCHEMA, random_rows(SIZES, 50))), share)


def test_answers_are_in_proportion() -> None:
    both = blend(0.3)
    mixture, support = both.mixture.answer(QUERIES).values, both.support.answer(QUERIES).values
    np.testing.assert_allclose(both.answer(QUERIES).values, 0.7 * mixture + 0.3 * support)


@pytest.mark.parametrize("share", [0.3, 1e-6, 1.0])
@pytest.mark.parametrize("rows", [1, 4001])
def test_rows_are_in_proportion(share: float, rows: int) -> None:
    both = blend(share)
    drawn = both.sample(rows, np.random.default_rng(0))
    assert {name: len(column) for name, column in drawn.items()} == dict.fromkeys(SIZES, rows)
    if rows > 1:
        counts = np.bincount(drawn["a"] * 3 + drawn["b"], minlength=6)
        np.testing.assert_allclose(counts / rows, both.answer(QUERIES).values, atol=0.01)


def test_arrays_hold_everything() -> None:
    both = blend(0.3)
    again = Blend.from_arrays(both.to_arrays(), rows=50, schema=SCHEMA)
    np.testing.assert_allclose(again.answer(QUERIES).values, both.answer(QUERIES).values, atol=1e-7)
