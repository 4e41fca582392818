"""Rows to start from."""

import numpy as np
import pytest

from scrim.spec.columns import IntegerColumn, RealColumn
from synth.genetic.measured_features import MeasuredFeatures
from synth.genetic.start import follow_shares, measured_shares
from synth.queries.reading import Reading
from tests.synth.genetic.problems import SCHEMA, Floats, random_rows

COLOUR, SEX, AGE, CHILDREN = (
    Reading.of(SCHEMA.attribute(name)) for name in ("colour", "sex", "age", "children")
)


def at_level(name: str, level: int) -> Reading:
    column = SCHEMA.attribute(name)
    assert isinstance(column, IntegerColumn | RealColumn)
    return Reading.at_level(column, level)


def measured_features(*tables: tuple[tuple[Reading, ...], list[float], float]) -> MeasuredFeatures:
    """Tables with their values and one noise for all of a table's cells."""
    return MeasuredFeatures(
        [axes for axes, _, _ in tables],
        [],
        [],
        np.concatenate([values for _, values, _ in tables]),
        np.concatenate([np.full(len(values), noise) for _, values, noise in tables]),
    )


class TestShares:
    def test_the_least_noisy_table_tells(self) -> None:
        direct = ((SEX,), [0.1, 0.9], 0.03)
        pair = ((COLOUR, SEX), [0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.2, 0.1], 0.01)
        assert measured_shares(measured_features(direct, pair))["sex"][1] == pytest.approx(
            [0.5, 0.5]
        )
        assert measured_shares(measured_features(pair, direct))["sex"][1] == pytest.approx(
            [0.5, 0.5]
        )
        closer = ((SEX,), [0.1, 0.9], 0.015)
        assert measured_shares(measured_features(pair, closer))["sex"][1] == pytest.approx(
            [0.1, 0.9]
        )
        # Summed over two cells each.
        assert measured_shares(measured_features(direct, pair))["colour"][1] == pytest.approx(
            [0.2, 0.3, 0.2, 0.3]
        )

    def test_of_equally_noisy_ones_the_finest(self) -> None:
        coarse = ((at_level("age", 1),), [0.4, 0.4, 0.2], 0.01)
        fine = ((at_level("age", 2),), [0.1, 0.3, 0.2, 0.2, 0.2], 0.01)
        for order in ([coarse, fine], [fine, coarse]):
            assert measured_shares(measured_features(*order))["age"][0].size == 5

    def test_no_share_is_negative(self) -> None:
        found = measured_shares(measured_features(((COLOUR,), [0.5, -0.1, 0.5, 0.1], 0.1)))
        assert found["colour"][1] == pytest.approx([0.5, 0, 0.5, 0.1])

    def test_a_table_that_tells_nothing_is_not_asked(self) -> None:
        partly = measured_features(((COLOUR,), [0.5, 0.1, 0.2, 0.2], 0.1))
        partly.noise[2] = np.inf
        assert measured_shares(partly) == {}
        assert measured_shares(measured_features(((SEX,), [-0.1, -0.2], 0.1))) == {}


class TestFollowing:
    def start(self, measured: MeasuredFeatures) -> tuple[Floats, Floats]:
        before = random_rows(200, np.random.default_rng(0))
        return before, follow_shares(before, measured, SCHEMA, np.random.default_rng(1))

    def test_columns_have_the_measured_shares_and_the_others_stay(self) -> None:
        before, after = self.start(
            measured_features(
                ((COLOUR,), [0.5, 0, 0.25, 0.25], 0.1), ((AGE,), [0.1, 0, 0.2, 0.3, 0.4], 0.1)
            )
        )
        assert np.bincount(after[:, 0].astype(int)).tolist() == [100, 0, 50, 50]
        assert np.bincount(AGE.codes(after[:, 2])).tolist() == [20, 0, 40, 60, 80]
        np.testing.assert_array_equal(after[:, [1, 3, 4, 5]], before[:, [1, 3, 4, 5]])

    def test_numbers_are_spread_inside_their_cells(self) -> None:
        _, after = self.start(
            measured_features(
                ((CHILDREN,), [0.5, 0, 0, 0, 0, 0, 0, 0.5], 0.1), ((AGE,), [0, 0, 0, 1, 0], 0.1)
            )
        )
        assert sorted(set(after[:, 3])) == [-1, 6]
        ages = after[:, 2]
        assert ages.min() >= 75 and ages.max() <= 99 and len(set(ages)) == 25
        assert np.array_equal(ages, np.rint(ages))

    def test_reals_keep_their_decimals(self) -> None:
        reading = at_level("price", 3)
        shares = [0.0, 0.3, 0.0, 0.4, 0.0, 0.0, 0.0, 0.1, 0.2]
        _, after = self.start(measured_features(((reading,), shares, 0.1)))
        prices = after[:, 4]
        np.testing.assert_array_equal(np.round(prices, 1), prices)
        found = np.bincount(reading.codes(prices), minlength=9) / 200
        np.testing.assert_allclose(found, shares, atol=0.02)
        assert np.isnan(prices).sum() == 40
