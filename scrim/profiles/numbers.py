"""Bounds and bins for the numbers of a public sample: quantiles, robust to outliers and codes."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from itertools import accumulate, pairwise
from typing import Any

from scrim.profiles.missing import looks_like_a_code

MOST_BINS = 20
MOST_DECIMALS = 6
"""Maximum decimals to declare; more digits come from floating-point arithmetic."""
FINEST_DECIMALS = 15
SPIKE = 0.05
"""Share of the rows at one number from which the number gets a bin of its own."""
MOST_SPIKES = 5
FULLEST = 3
EMPTIEST = 0.05
"""Bins of equal width are proposed if none holds more than 3 times its share, and few less than 5%."""
FAR = 5
"""Numbers farther from the others than 5 times the range of 98% of them are outliers."""
ENOUGH = 50
"""With fewer numbers, none is called an outlier."""
RARE = 0.01

# A number with leading zeros is a code, such as a postal code.
NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


def is_number(text: str) -> bool:
    """Whether a text is a number, and not a code with leading zeros."""
    return NUMBER.fullmatch(text) is not None


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column, in order, without codes of missing and far outliers."""

    values: list[Decimal]
    counts: list[int]
    codes: tuple[str, ...]
    """Texts of numbers that stand for missing, such as 99999."""
    outliers: int
    """How many cells lie outside `values`."""

    @classmethod
    def of(cls, counts: Counter[str]) -> "Numbers":
        """Read the numbers of a column; `counts` has numbers alone."""
        read: Counter[Decimal] = Counter()
        spelled: dict[Decimal, list[str]] = {}
        for text, count in counts.items():
            number = Decimal(text)
            read[number] += count
            spelled.setdefault(number, []).append(text)
        values = sorted(read)
        codes = _codes(values, read)
        values = [value for value in values if value not in codes]
        low, high = _fences(values, read)
        kept = [value for value in values if low <= value <= high]
        return cls(
            values=kept,
            counts=[read[value] for value in kept],
            codes=tuple(sorted(text for value in codes for text in spelled[value])),
            outliers=sum(read[value] for value in values) - sum(read[value] for value in kept),
        )

    @property
    def total(self) -> int:
        """The number of cells."""
        return sum(self.counts)

    @property
    def is_whole(self) -> bool:
        """Whether every number is whole."""
        return all(value == value.to_integral_value() for value in self.values)

    @property
    def decimals(self) -> int:
        """The largest number of decimals."""
        return max(max(0, -int(value.normalize().as_tuple().exponent)) for value in self.values)

    def declare(self) -> dict[str, Any]:
        """Type, bounds and bins."""
        return self._declare_whole() if self.is_whole else self._declare_real()

    def quantile(self, share: float) -> Decimal:
        """The smallest number that at least this share of the cells does not exceed."""
        sums = list(accumulate(self.counts))
        return self.values[min(bisect_left(sums, share * sums[-1]), len(sums) - 1)]

    def _declare_whole(self) -> dict[str, Any]:
        lowest, highest = self.values[0], self.values[-1]
        width = max(Decimal(1), _round_up((highest - lowest + 1) / MOST_BINS))
        lower = _multiple(lowest / width, ROUND_FLOOR) * width
        # Both bounds are included, so that the last bin is as wide as the others.
        upper = _multiple((highest + 1) / width, ROUND_CEILING) * width - 1
        column = {"type": "integer", "lower": int(lower), "upper": int(upper)}
        if self._is_even(lower, width):
            return column | {"bins": {"width": float(width)}}
        lower = self._tight(lower)
        edges = self._edges(lower, upper, Decimal(1))
        return column | {"lower": int(lower), "bins": {"edges": [float(edge) for edge in edges]}}

    def _declare_real(self) -> dict[str, Any]:
        # A bin narrower than the last digit would hold no number.
        finest = Decimal(1).scaleb(-min(self.decimals, FINEST_DECIMALS))
        lowest, highest = self.values[0], self.values[-1]
        width = max(finest, _round_up((highest - lowest) / MOST_BINS))
        lower = _multiple(lowest / width, ROUND_FLOOR) * width
        upper = max(_multiple(highest / width, ROUND_CEILING) * width, lower + width)
        column: dict[str, Any] = {"type": "real", "lower": float(lower), "upper": float(upper)}
        if self.decimals <= MOST_DECIMALS:
            column["decimals"] = self.decimals
        if self._is_even(lower, width):
            return column | {"bins": {"width": float(width)}}
        lower = self._tight(lower)
        edges = self._edges(lower, upper, finest)
        return column | {"lower": float(lower), "bins": {"edges": [float(edge) for edge in edges]}}

    def _is_even(self, lower: Decimal, width: Decimal) -> bool:
        """Whether bins of equal width divide the cells well enough."""
        if len(self.values) <= MOST_BINS and width <= 1 and self.is_whole:
            return True
        shares = Counter[int]()
        for value, count in zip(self.values, self.counts, strict=True):
            shares[int((value - lower) // width)] += count
        bins = max(shares) + 1
        fullest, even = max(shares.values()) / self.total, 1 / bins
        sparse = sum(1 for place in range(bins) if shares[place] < EMPTIEST * even * self.total)
        return fullest <= FULLEST * even and 4 * sparse <= bins

    def _tight(self, lower: Decimal) -> Decimal:
        """The lower bound, or the lowest number itself if it is frequent, such as a code of -1."""
        lowest = self.values[0]
        return lowest if self._is_spike(0) else lower

    def _is_spike(self, place: int) -> bool:
        return self.counts[place] >= SPIKE * self.total

    def _edges(self, lower: Decimal, upper: Decimal, finest: Decimal) -> list[Decimal]:
        """Edges at quantiles, rounded; a number with many cells has a bin of its own."""
        places = sorted(range(len(self.values)), key=lambda place: -self.counts[place])
        own = [self.values[place] for place in places[:MOST_SPIKES] if self._is_spike(place)]
        shares = [*(place / MOST_BINS for place in range(1, MOST_BINS)), 0.99]
        found = sorted({self.quantile(share) for share in shares} - set(own))
        rounded = {_readable(value, found, finest) for value in found}
        spikes = {edge for value in own for edge in (value, value + finest)}
        # No edge may lie so close to a spike that nothing is between them.
        inside = sorted(
            edge
            for edge in rounded | spikes
            if lower < edge < upper and edge == edge.quantize(finest)
        )
        return _thinned([lower, *inside, upper], spikes, most=MOST_BINS + 2)


def _codes(values: list[Decimal], counts: Counter[Decimal]) -> set[Decimal]:
    """Numbers written like codes of missing that lie apart from all others."""
    written = {value for value in values if looks_like_a_code(format(value, "f"))}
    rest = [value for value in values if value not in written]
    if not rest:
        return set()
    low, high = rest[0], rest[-1]
    reach = max(_spread(rest, counts), Decimal(1))
    above = {value for value in written if value > high + reach / 2 and value > 1.2 * float(high)}
    below = {value for value in written if value < 0 <= low}
    return above | below


def _fences(values: list[Decimal], counts: Counter[Decimal]) -> tuple[Decimal, Decimal]:
    """The range outside which a number is an outlier: far from 98% of the cells, and rare."""
    everything = (values[0], values[-1])
    total = sum(counts[value] for value in values)
    reach = FAR * _spread(values, counts)
    if total < ENOUGH or reach == 0:
        return everything
    low, high = _middle(values, counts)
    inside = [value for value in values if low - reach <= value <= high + reach]
    outside = total - sum(counts[value] for value in inside)
    return (inside[0], inside[-1]) if outside <= RARE * total else everything


def _spread(values: list[Decimal], counts: Counter[Decimal]) -> Decimal:
    low, high = _middle(values, counts)
    return high - low


def _middle(values: list[Decimal], counts: Counter[Decimal]) -> tuple[Decimal, Decimal]:
    """The range of 98% of the cells."""
    sums = list(accumulate(counts[value] for value in values))
    first = bisect_right(sums, 0.01 * sums[-1])
    last = bisect_left(sums, 0.99 * sums[-1])
    return values[min(first, len(values) - 1)], values[last]


def _readable(value: Decimal, among: list[Decimal], finest: Decimal) -> Decimal:
    """Round an edge by at most a quarter of the distance to its neighbours."""
    gaps = [abs(other - value) for other in among if other != value]
    grain = max(_round_down(min(gaps, default=finest) / 4), finest)
    return (value / grain).to_integral_value(ROUND_HALF_EVEN) * grain


def _thinned(edges: list[Decimal], kept: set[Decimal], *, most: int) -> list[Decimal]:
    """At most this many bins: edges next to the narrowest bins go first, those of spikes last."""
    while len(edges) - 1 > most:
        inner = [place for place in range(1, len(edges) - 1) if edges[place] not in kept]
        if not inner:
            break
        edges.pop(min(inner, key=lambda place: edges[place + 1] - edges[place - 1]))
    assert all(a < b for a, b in pairwise(edges))
    return edges


def _round_up(number: Decimal) -> Decimal:
    """Round up to 1, 2, 5, 10, 20, 50 ... or a tenth of these."""
    if number <= 0:
        return Decimal(0)
    power = Decimal(1).scaleb(number.adjusted())
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= number)


def _round_down(number: Decimal) -> Decimal:
    """Round down to 1, 2, 5, 10, 20, 50 ... or a tenth of these."""
    if number <= 0:
        return Decimal(0)
    power = Decimal(1).scaleb(number.adjusted())
    return next(digit * power for digit in (5, 2, 1) if digit * power <= number)


def _multiple(number: Decimal, rounding: str) -> Decimal:
    return number.to_integral_value(rounding)
