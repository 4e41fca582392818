"""Plots of error against epsilon."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt

from benchmarks.comparison.summary import ErrorEstimates, Estimate

STYLES = {
    "gaussian": ("#6b6b6b", "cross"),
    "mwem": ("#8c564b", "square"),
    "pep": ("#c49c00", "triangle-down"),
    "gem": ("#1f5fbf", "circle"),
    "gem_plus": ("#5aa9ff", "cross"),
    "rap": ("#e377c2", "triangle-left"),
    "rap_softmax": ("#9467bd", "triangle-right"),
    "relaxed_projection": ("#2a9d3a", "diamond"),
    "generative_network": ("#17b3c9", "triangle-up"),
    "pgm_em": ("#556b2f", "cross"),
    "aim": ("#9bbb3c", "square"),
    "pmw_pub": ("#d62728", "square"),
    "pep_pub": ("#ff8c1a", "triangle-down"),
    "gem_pub": ("#0b2545", "circle"),
    "generative_network_pub": ("#00a676", "diamond"),
    "private_gsd": ("#c2185b", "circle"),
    "rap_plus_plus": ("#f57c00", "square"),
    "dual_query": ("#00695c", "cross"),
    "fem": ("#5d4037", "diamond"),
    "query_gan": ("#7b1fa2", "triangle-up"),
    "random_join": ("#6b6b6b", "cross"),
    "h_mwem": ("#8c564b", "square"),
    "h_gem": ("#1f5fbf", "circle"),
}
"""Colour and shape of each mechanism, the same in every plot."""

LARGEST, MEAN = "largest error", "mean error"
PANEL = {"width": 330, "height": 230}


@dataclass(frozen=True)
class Mark:
    """The errors of one mechanism at one epsilon, and the row of panels they belong to."""

    row: str
    """What the error refers to; it follows "largest error" in the title of an axis."""
    mechanism: str
    epsilon: float
    errors: ErrorEstimates


def save_plot(title: str, marks: Sequence[Mark], path: Path) -> None:
    """Plot largest and mean error side by side, with one row of panels for each kind of mark."""
    points = [point for mark in marks for point in _points(mark)]
    mechanisms = [name for name in STYLES if any(mark.mechanism == name for mark in marks)]
    epsilons = sorted({mark.epsilon for mark in marks})
    rows = [
        alt.hconcat(
            *(_panel(points, mechanisms, epsilons, row, kind) for kind in (LARGEST, MEAN)),
            spacing=28,
        )
        for row in dict.fromkeys(mark.row for mark in marks)
    ]
    chart = alt.vconcat(*rows, title=title, spacing=24)
    styled(chart).save(path)


def _points(mark: Mark) -> list[dict[str, Any]]:
    """The points of one mark in the panels of its row."""
    return [
        {
            "mechanism": mark.mechanism,
            "epsilon": mark.epsilon,
            "row": mark.row,
            "kind": kind,
            "error": estimate.mean,
            **_bar(estimate),
        }
        for kind, estimate in ((LARGEST, mark.errors.max), (MEAN, mark.errors.mean))
    ]


def _bar(estimate: Estimate) -> dict[str, float]:
    """One standard error to each side, kept above zero for the logarithmic axis."""
    spread = estimate.standard_error or 0.0
    low = max(estimate.mean - spread, estimate.mean / 10)
    return {"low": low, "high": estimate.mean + spread}


def _panel(
    points: list[dict[str, Any]],
    mechanisms: list[str],
    epsilons: list[float],
    row: str,
    kind: str,
) -> alt.LayerChart | alt.FacetChart:
    """One line with error bars for each mechanism, both axes logarithmic."""
    shown = [p for p in points if p["row"] == row and p["kind"] == kind]
    colours, shapes = zip(*(STYLES[name] for name in mechanisms), strict=True)
    base = alt.Chart(alt.Data(values=shown)).encode(
        x=alt.X("epsilon:Q", title="epsilon")
        .scale(type="log", nice=False, padding=12)
        .axis(values=epsilons, format="~g", grid=False),
        color=alt.Color("mechanism:N", title=None).scale(domain=mechanisms, range=colours),
    )
    # The same axis in every row, so that they can be compared.
    ticks = _ticks([p for p in points if p["kind"] == kind])
    error = (
        alt.Y("error:Q", title=f"{kind} {row}")
        .scale(type="log", domain=(ticks[0], ticks[-1]), nice=False)
        .axis(values=ticks, format="~g", minExtent=46)
    )
    lines = base.mark_line(strokeWidth=1.8).encode(y=error)
    bars = base.mark_rule(strokeWidth=1.4).encode(y="low:Q", y2="high:Q")
    marks = base.mark_point(filled=True, size=42, opacity=1).encode(
        y="error:Q",
        shape=alt.Shape("mechanism:N", title=None).scale(domain=mechanisms, range=shapes),
    )
    return alt.layer(lines, bars, marks).properties(**PANEL)


def _ticks(points: list[dict[str, Any]]) -> list[float]:
    """1, 2 and 5 times powers of ten, from just below all error bars to just above them."""
    low, high = min(point["low"] for point in points), max(point["high"] for point in points)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    numbers = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    first = max(i for i, number in enumerate(numbers) if number < low)
    last = min(i for i, number in enumerate(numbers) if number > high)
    return numbers[first : last + 1]


def styled(chart: alt.TopLevelMixin) -> alt.TopLevelMixin:
    """The look that all plots share."""
    configured: alt.TopLevelMixin = (
        chart.configure(background="white", font="sans-serif", padding=12, aria=False)
        .configure_title(fontSize=15, anchor="start", offset=12)
        .configure_axis(labelFontSize=11, titleFontSize=12, titleFontWeight="normal")
        .configure_axisY(gridColor="#e6e6e6")
        .configure_legend(labelFontSize=12, symbolSize=90, rowPadding=5)
        .configure_view(stroke="#cccccc")
    )
    return configured
