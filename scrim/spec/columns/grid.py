"""The public grid on which numbers are counted before bins are placed (docs/privacy.md, section 5.2).

It follows from the bounds, the decimals and the special values alone. Its finest cells hold single numbers
near zero (or near the bound that is nearest to zero) and grow in proportion to the distance from there, so
that heavy tails need few of them. Round numbers, special values and both bounds have cells of their own.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

FINE_CELLS = 4096
"""About the number of finest cells."""
ONE_LEVEL, TWO_LEVELS = 64, 1024
"""Largest numbers of finest cells for which one level, or two levels, are counted; beyond, three are."""
STEPS_OF_REALS = 10**6
"""About the number of places at which real numbers without decimals are divided."""


@dataclass(frozen=True)
class NumberLine:
    """Numbers between two bounds, and the distance between neighbours."""

    lower: float
    upper: float
    decimals: int | None
    """0 for whole numbers; None if all floats between the bounds are possible."""
    special: tuple[float, ...] = ()

    def after(self, number: float) -> float:
        """The smallest possible number above one."""
        if self.decimals is None:
            return math.nextafter(number, math.inf)
        scale = int(10**self.decimals)
        step = math.floor(number * scale)
        # The product may be off by one unit, so compare the quotient, which is correctly rounded.
        while step / scale <= number:
            step += 1
        return step / scale

    def holds(self, number: float) -> bool:
        """Whether a number has no more than the declared decimals."""
        return self.decimals is None or round(number, self.decimals) == number

    def alone(self, number: float) -> Iterator[float]:
        """The starts of cells that separate a number from all others."""
        yield number
        if number < self.upper and (following := self.after(number)) <= self.upper:
            yield following


@dataclass(frozen=True)
class Grid:
    """Partitions of numbers, each finer than the one before; `starts[-1]` is the finest."""

    starts: tuple[tuple[float, ...], ...]
    """The starts of the half-open cells of each level."""
    upper: float

    @property
    def cells(self) -> int:
        """Number of finest cells."""
        return len(self.starts[-1])

    @property
    def edges(self) -> tuple[tuple[float, ...], ...]:
        """The edges of each level; the last cell is closed."""
        return tuple((*level, self.upper) for level in self.starts)


@lru_cache(maxsize=1000)
def grid_of(line: NumberLine) -> Grid:
    """The levels of the grid, coarse ones first."""
    finest = _finest(line)
    number = len(finest)
    depth = 1 if number <= ONE_LEVEL else 2 if number <= TWO_LEVELS else 3
    levels = [finest]
    for level in range(depth - 1, 0, -1):
        levels.append(_thinned(levels[-1], math.ceil(number ** (level / depth))))
    return Grid(tuple(reversed(levels)), line.upper)


def _thinned(starts: tuple[float, ...], number: int) -> tuple[float, ...]:
    return tuple(starts[i * len(starts) // number] for i in range(number))


def _finest(line: NumberLine) -> tuple[float, ...]:
    digits = _digits(line)
    scale = 10**digits
    low, high = math.ceil(line.lower * scale), math.floor(line.upper * scale)
    starts = {line.lower}
    if high - low < FINE_CELLS:
        starts.update(step / scale for step in range(low, high + 1))
    else:
        starts.update(step / scale for step in _growing(low, high))
        for step in _round_steps(low, high):
            starts.update(line.alone(step / scale))
    for number in (line.lower, line.upper, *line.special):
        if line.holds(number):
            starts.update(line.alone(number))
    if not line.holds(line.lower):
        starts.discard(low / scale)  # every cell holds a number with the declared decimals
    return tuple(sorted(start for start in starts if line.lower <= start <= line.upper))


def _digits(line: NumberLine) -> int:
    """The decimals of the places at which cells may start."""
    if line.decimals is not None:
        return line.decimals
    step = (line.upper - line.lower) / STEPS_OF_REALS
    return max(-300, min(300, math.ceil(-math.log10(step))))


def _growing(low: int, high: int) -> Iterable[int]:
    """Steps at equal distances of asinh((x - centre) / width), the smallest about one."""
    centre = min(max(low, 0), high)
    left, right = centre - low, high - centre
    width = _width(left, right)
    for side, sign in ((left, -1), (right, 1)):
        cells = max(1, round(width * math.asinh(side / width)))
        for i in range(cells):
            yield centre + sign * round(width * math.sinh(i / width))


def _width(left: int, right: int) -> float:
    """The width for which both sides have FINE_CELLS cells together; found by halving."""
    narrow, wide = 1e-3, float(left + right)
    for _ in range(60):
        middle = math.sqrt(narrow * wide)
        if middle * (math.asinh(left / middle) + math.asinh(right / middle)) < FINE_CELLS:
            narrow = middle
        else:
            wide = middle
    return narrow


def _round_steps(low: int, high: int) -> Iterator[int]:
    """Numbers with at most two digits other than trailing zeros."""
    for power in range(len(str(max(abs(low), abs(high))))):
        for digits in range(10, 100):
            for sign in (-1, 1):
                step = sign * digits * 10**power
                if low <= step <= high:
                    yield step


def separated(edges: Iterable[float], line: NumberLine) -> tuple[float, ...]:
    """Edges with those that give every special value a cell of its own."""
    starts = sorted(edges)[:-1]
    for number in line.special:
        for start in line.alone(number):
            place = bisect_left(starts, start)
            if place == len(starts) or starts[place] != start:
                starts.insert(place, start)
    return (*starts, line.upper)
