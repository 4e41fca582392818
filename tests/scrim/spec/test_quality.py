"""The sentence about the quality of a release."""

import pytest

from scrim.spec.quality import quality_in_words


def test_one_sentence() -> None:
    sentence = quality_in_words(
        confidence=0.95, max_error=0.00642, mean=0.02951, estimate=0.0289, share_of="rows"
    )
    assert sentence == (
        "On average, a table you asked for is off by 2.9% of the rows (95%: at most 3.0%); the worst "
        "single count by at most 0.65%."
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0%"),
        (1.2e-5, "0.0013%"),
        (0.00042001, "0.043%"),
        (0.1472, "14.8%"),
        (1.0, "100.0%"),
    ],
)
def test_bounds_are_rounded_up(share: float, text: str) -> None:
    sentence = quality_in_words(
        confidence=0.999, max_error=share, mean=share, estimate=0.5, share_of="groups"
    )
    assert f"off by 50.0% of the number of groups (99.9%: at most {text})" in sentence
    assert sentence.endswith(f"at most {text}.")
