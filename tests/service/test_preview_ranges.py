"""The ranges that previews state around expected errors."""

import pytest

from service.releases.preview_schemas import ExpectedView
from synth.planning.expected import Expected


@pytest.mark.parametrize("error", [1e-6, 0.2, 0.9, 1.0, 6.8])
def test_expected_errors_are_in_their_ranges(error: float) -> None:
    """Errors of noisy answers may exceed one, because they are not clipped."""
    found = ExpectedView.of(Expected(error, error, error), rows=1_000)
    for field in ("mean_absolute_error", "mean_total_variation", "max_error"):
        low, expected, high = (getattr(each, field) for each in (found.low, found, found.high))
        assert low < expected <= high
        assert error > 1 or high <= 1
