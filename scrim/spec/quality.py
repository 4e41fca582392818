"""How far released rows are from the truth: what `certify` states, and one sentence about it."""

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import Literal

from scrim.spec.base import Spec

RowNoun = Literal["rows", "groups"]


class ItemQuality(Spec):
    """The error of one item of the workload in the released rows."""

    item: str
    """The item, in words."""
    tables: int
    """The number of its tables; a range, prefix or halfspace is a table of two cells."""
    mean_total_variation: float
    """Upper bound on the mean total-variation distance of these tables from the truth, as a fraction."""
    estimate: float
    """An estimate of the same distance, without the margin for the confidence."""


class ColumnQuality(Spec):
    """The error of the distribution of one column in the released rows."""

    name: str
    """The column."""
    total_variation: float
    """Upper bound on the total-variation distance of its distribution from the truth, as a fraction."""
    estimate: float
    """An estimate of the same distance, without the margin for the confidence."""


class Quality(Spec):
    """The certified error of the released rows. Each bound holds with the confidence, by itself.

    Fractions are relative to the released number of rows (of groups, for two-level data).
    """

    summary: str
    """The main figures, in one sentence."""
    confidence: float
    """The probability with which each bound holds."""
    max_error: float
    """Upper bound on the error of every count of the workload, as a fraction."""
    mean_total_variation: float
    """Upper bound on the mean total-variation distance over the tables of all items, as a fraction."""
    estimate: float
    """An estimate of the same mean, without the margin for the confidence."""
    items: list[ItemQuality]
    """The items of the workload, in order."""
    columns: list[ColumnQuality]
    """The columns that are categorical or have bins, and have more than one value."""
    left_out_columns: list[str]
    """The other released columns. Their distributions are not certified."""
    share_of: RowNoun
    """What the fractions are shares of."""


def quality_in_words(
    *, confidence: float, max_error: float, mean: float, estimate: float, share_of: RowNoun
) -> str:
    """The main figures of a release's quality in one sentence; bounds are rounded up."""
    whole = "the rows" if share_of == "rows" else "the number of groups"
    return (
        f"On average, a table you asked for is off by {_percent(estimate, ROUND_HALF_EVEN)} of {whole} "
        f"({100 * confidence:g}%: at most {_percent(mean, ROUND_CEILING)}); the worst single count by "
        f"at most {_percent(max_error, ROUND_CEILING)}."
    )


def _percent(share: float, rounding: str) -> str:
    """One decimal from 1% on, two significant digits below."""
    number = 100 * Decimal(share)
    digits = 1 if number >= 1 or number == 0 else 1 - number.adjusted()
    return f"{number.quantize(Decimal(1).scaleb(-digits), rounding):f}%"
