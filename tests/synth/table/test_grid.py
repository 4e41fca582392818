from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from synth.table.grid import round_within

NUMBERS = st.one_of(
    st.floats(-1e3, 1e3), st.floats(-1e300, 1e300), st.integers(-300, 300).map(lambda k: k / 100)
)


def _has_grid_value(low: float, high: float, decimals: int) -> bool:
    """Whether the float nearest to some k / 10**decimals is in the interval; exact."""
    scale = 10**decimals
    near = int(Fraction(low) * scale)
    return any(low <= float(Fraction(k, scale)) <= high for k in range(near - 2, near + 3))


@given(st.lists(NUMBERS, min_size=3, max_size=3).map(sorted), st.integers(0, 15))
def test_rounding_stays_inside_and_reaches_the_grid_wherever_it_can(
    numbers: list[float], decimals: int
) -> None:
    low, value, high = numbers
    rounded = round_within(np.array([value]), low, high, decimals)[0].item()
    assert low <= rounded <= high
    if abs(value) * 10.0**decimals >= 2**52:
        # Floats are coarser than the grid here: nothing is left to round.
        assert abs(rounded - value) <= 10.0**-decimals
    elif _has_grid_value(low, high, decimals):
        assert rounded == float(f"{rounded:.{decimals}f}")
    else:
        assert rounded == value


@given(NUMBERS, st.integers(0, 15))
def test_rounding_twice_changes_nothing(value: float, decimals: int) -> None:
    once = round_within(np.array([value]), -1e301, 1e301, decimals)
    assert np.array_equal(round_within(once, -1e301, 1e301, decimals), once)


def test_missing_stays_missing_and_zero_has_no_sign() -> None:
    rounded = round_within(np.array([np.nan, -0.001]), -1.0, 1.0, 2)
    assert np.isnan(rounded[0])
    assert rounded[1] == 0
    assert not np.signbit(rounded[1])
