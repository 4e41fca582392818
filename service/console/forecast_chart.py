"""The expected error against epsilon, as coordinates of a small chart with logarithmic axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scrim.spec.budget import UNITS_PER_RHO, epsilon_of_units
from service.populations.schemas import PopulationView
from service.releases.preview_schemas import ExpectedView, PreviewView

VIEW_WIDTH, VIEW_HEIGHT = 320, 150
"""Size of the view box."""
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 8, 26
"""Margins of the plot: labels of errors on the left, labels of epsilon below."""


@dataclass(frozen=True)
class Mark:
    """A place on the chart with its label."""

    x: float
    y: float
    label: str


@dataclass(frozen=True)
class Chart:
    """Everything that the template draws, in units of the view box."""

    name: str
    """What the error is."""
    line: str
    """The points of the line."""
    band: str
    """The corners of the range in which similar releases fell."""
    asked: Mark
    left: float | None
    """Where the remaining budget ends, at the earliest where the chart begins; None if beyond its end."""
    left_label: str
    epsilons: list[Mark]
    errors: list[Mark]


def chart_of(preview: PreviewView, population: PopulationView) -> Chart | None:
    """The chart of a preview with a curve, and the population's remaining budget; None without a curve."""
    units = math.floor(population.budget.rho_left * UNITS_PER_RHO)
    left = epsilon_of_units(units, population.delta) if units > 0 else 0.0
    points = {each.epsilon: each.expected for each in preview.curve}
    points[preview.epsilon] = preview.expected
    if len(points) < 3:
        return None
    of_tables = all(each.mean_total_variation is not None for each in points.values())
    field = "mean_total_variation" if of_tables else "mean_absolute_error"
    ordered = sorted(points)
    found = [_ends(points[epsilon], field) for epsilon in ordered]
    place = _Axes(
        _Axis(ordered[0], ordered[-1], LEFT, VIEW_WIDTH - RIGHT),
        _Axis(
            min(low for low, _, _ in found),
            max(high for _, _, high in found),
            VIEW_HEIGHT - BOTTOM,
            TOP,
        ),
    )
    lower = [place.at(e, low) for e, (low, _, _) in zip(ordered, found, strict=True)]
    upper = [place.at(e, high) for e, (_, _, high) in zip(ordered, found, strict=True)]
    middle = [place.at(e, error) for e, (_, error, _) in zip(ordered, found, strict=True)]
    x, y = place.at(preview.epsilon, _ends(preview.expected, field)[1])
    return Chart(
        name=field.replace("_", " "),
        line=_path(middle),
        band=_path([*upper, *reversed(lower)]),
        asked=Mark(x, y, f"{_ends(preview.expected, field)[1]:.2g}"),
        left=place.x.at(max(left, ordered[0])) if left <= ordered[-1] else None,
        left_label=f"{left:.2g}",
        epsilons=[Mark(place.x.at(e), VIEW_HEIGHT - BOTTOM, f"{e:g}") for e in place.x.decades()],
        errors=[Mark(LEFT, place.y.at(e), f"{e:g}") for e in place.y.decades()],
    )


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where a value is drawn."""
        span = math.log(self.high / self.low) or 1.0
        return round(self.start + (self.end - self.start) * math.log(value / self.low) / span, 1)

    def decades(self) -> list[float]:
        """The powers of ten on the axis."""
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


@dataclass(frozen=True)
class _Axes:
    x: _Axis
    y: _Axis

    def at(self, epsilon: float, error: float) -> tuple[float, float]:
        """Where a point is drawn."""
        return self.x.at(epsilon), self.y.at(error)


def _ends(expected: ExpectedView, field: str) -> tuple[float, float, float]:
    """The lower end, the expected error and the upper end; above 0, for the logarithm."""
    found = (getattr(each, field) for each in (expected.low, expected, expected.high))
    low, error, high = (max(1e-9, each) for each in found)
    return low, error, high


def _path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)
