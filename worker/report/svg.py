"""Charts as SVG without a library: small, the same bytes every time, and coloured by the page.

Every text goes through `element`, which escapes it. Colours are classes of the style sheet, so that
charts follow light, dark and print.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from markupsafe import Markup, escape

from worker.report.texts import percent, shortened, visible, width_of

Child = str | Markup
WIDTH = 300
"""Width of a chart of one column, in units of the view box (about pixels)."""
LABEL, VALUE, LINE = 108, 44, 17
"""Sizes in a bar chart: the label's width, the number's width, and the height of a line."""
LABEL_CHARACTERS, LONG_CHARACTERS = 17, 48
"""Characters that fit beside a bar, and above it."""
NAME_CHARACTERS = 18
"""Characters of a name in a map."""
LETTERS, SMALL_LETTERS = 11, 9
"""The font sizes in the style sheet."""
PLOT = 92
"""Height of the plot of numbers."""
SHADES = 10
"""Number of shades in a heat map."""
FEW = 12
"""Largest number of columns for which a heat map has room for numbers."""


def element(name: str, *children: Child, **attributes: float | str) -> Markup:
    """An element; texts and attributes are escaped. `_` stands for `-`, `class_` for `class`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
    )
    if not children:
        return Markup(f"<{name}{written}/>")
    inner = "".join(escape(visible(child)) for child in children)
    return Markup(f"<{name}{written}>{inner}</{name}>")


def _value(value: float | str) -> str:
    return visible(value) if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _chart(
    size: tuple[float, float], title: str, marks: Iterable[Markup], **attributes: float | str
) -> Markup:
    """A drawing whose title is its text for screen readers."""
    view_box = " ".join(map(_number, (0, 0, *size)))
    inner = (element("title", title), *marks)
    return element("svg", *inner, viewBox=view_box, role="img", **attributes)


def bar_chart(
    labels: Sequence[str], shares: Sequence[float], *, is_gathered: bool, title: str
) -> Markup:
    """Categories one below another, each with its share; long labels stand above their bars.

    The last bar looks different if it stands for many categories.
    """
    is_long = any(width_of(label) > LABEL_CHARACTERS for label in labels)
    left = 0 if is_long else LABEL
    line = 2 * LINE if is_long else LINE
    scale = (WIDTH - left - VALUE) / max(*shares, 1e-9)
    marks = []
    for position, (label, share) in enumerate(zip(labels, shares, strict=True)):
        top = line * position
        written = shortened(label, LONG_CHARACTERS if is_long else LABEL_CHARACTERS)
        where = {"x": 0} if is_long else {"x": LABEL - 6, "class_": "e"}
        base = top + line - 5
        look = {"class_": "o"} if is_gathered and position == len(labels) - 1 else {}
        marks += [
            element("text", written, y=top + 12, **where),
            element("rect", x=left, y=base - 10, width=max(share * scale, 0.5), height=12, **look),
            element("text", percent(share), x=left + share * scale + 5, y=base, class_="n"),
        ]
    return _chart((WIDTH, line * len(labels)), title, marks)


def histogram(
    labels: Sequence[str], shares: Sequence[float], *, ends: tuple[str, str], title: str
) -> Markup:
    """Numbers side by side, from the lower bound to the upper one."""
    top = max(*shares, 1e-9)
    width = WIDTH / len(shares)
    bars = [
        element(
            "rect",
            element("title", f"{label}: {percent(share)}"),
            x=i * width + 0.5,
            y=14 + PLOT * (1 - share / top),
            width=width - 1,
            height=max(PLOT * share / top, 0.5),
        )
        for i, (label, share) in enumerate(zip(labels, shares, strict=True))
    ]
    floor = 14 + PLOT
    marks = [
        *bars,
        element("path", d=f"M0 {floor}h{WIDTH}", class_="a"),
        element("text", f"highest bar {percent(top)}", x=WIDTH, y=9, class_="e"),
        element("text", ends[0], x=0, y=floor + 14),
        element("text", ends[1], x=WIDTH, y=floor + 14, class_="e"),
    ]
    return _chart((WIDTH, floor + 18), title, marks)


@dataclass(frozen=True)
class Pair:
    """A pair of names in a map: how dark its square is, how large, and what is written in it."""

    first: int
    second: int
    shade: int
    """From 0 to SHADES."""
    size: Literal["full", "small", "none"]
    text: str


def heat_map(
    names: Sequence[str],
    strengths: Sequence[tuple[int, int, float]],
    whole: set[tuple[int, int]],
    *,
    title: str,
) -> Markup:
    """Strengths from 0 to 1; pairs that are not `whole` have a smaller square."""
    pairs = [
        Pair(
            first,
            second,
            round(strength * SHADES),
            "full" if (first, second) in whole else "small",
            f"{strength:.2f}",
        )
        for first, second, strength in strengths
    ]
    return pair_map(names, pairs, title=title)


def pair_map(names: Sequence[str], pairs: Sequence[Pair], *, title: str) -> Markup:
    """Pairs of names below the diagonal, as squares; if there are few, with their texts."""
    number = len(names)
    cell = 38 if number <= FEW else 22 if number <= 24 else 13
    letters = LETTERS if number <= 24 else SMALL_LETTERS
    margin = letters * 0.62 * NAME_CHARACTERS + 8
    shades: list[list[str]] = [[] for _ in range(SHADES + 1)]
    values = []
    for pair in pairs:
        level = min(SHADES, pair.shade)
        if number <= FEW and pair.size != "full":
            level = min(level, SHADES // 2)  # its text extends beyond the square
        gap = 1 if pair.size == "full" else math.ceil(cell / 3.5)
        x, y = margin + pair.first * cell + gap, (pair.second - 1) * cell + gap
        side = cell - 2 * gap
        if pair.size != "none":
            shades[level].append(f"M{_number(x)} {y}h{side}v{side}h-{side}z")
        if number <= FEW:
            middle, base = margin + (pair.first + 0.5) * cell, (pair.second - 0.5) * cell + 4
            look = "c d" if level > SHADES / 2 else "c"
            values.append(element("text", pair.text, x=middle, y=base, class_=look))
    marks = [
        element("path", d="".join(paths), class_=f"s{level}")
        for level, paths in enumerate(shades)
        if paths
    ]
    marks += _names_of(names, cell=cell, letters=letters, margin=margin)
    floor = (number - 1) * cell
    width, height = margin + floor + 2, floor + margin
    size = {} if letters == LETTERS else {"class_": "small"}
    return _chart((width, height), title, [*marks, *values], width=width, **size)


def _names_of(names: Sequence[str], *, cell: int, letters: int, margin: float) -> Iterator[Markup]:
    """The names of a map's rows, at the left, and of its columns, below."""
    floor = (len(names) - 1) * cell
    for position, name in enumerate(names):
        label = shortened(name, NAME_CHARACTERS)
        if position > 0:
            base = (position - 0.5) * cell + letters * 0.35
            yield element("text", label, x=margin - 6, y=base, class_="e")
        if position < len(names) - 1:
            base = margin + (position + 0.5) * cell + letters * 0.35
            turned = f"translate({_number(base)} {_number(floor + 6)}) rotate(-90)"
            yield element("text", label, transform=turned, class_="e")


def residual_plot(shares: Sequence[float], edges: Sequence[float], *, title: str) -> Markup:
    """Bars of standardised residuals, with the curve expected for the true values."""
    width, height, floor = 640, 210, 180
    step = width / len(shares)
    half = (edges[1] - edges[0]) / 2
    normal = NormalDist()
    # The curve passes over the middle of each bar at the share expected for the true values.
    curve = [normal.cdf(e + half) - normal.cdf(e - half) for e in _middles(edges, half)]
    top = max(*shares, *curve) * 1.05
    bars = [
        element(
            "rect",
            element("title", f"{_span(i, edges)}: {percent(share)}"),
            x=i * step + 1,
            y=floor * (1 - share / top),
            width=step - 2,
            height=floor * share / top,
        )
        for i, share in enumerate(shares)
    ]
    points = " ".join(
        f"{_number((i + 1) * step / 2)},{_number(floor * (1 - share / top))}"
        for i, share in enumerate(curve, 2)
    )
    ticks = [
        element("text", _signed(edge), x=(i + 1) * step, y=floor + 16, class_="c")
        for i, edge in enumerate(edges[1:-1], 1)
        if edge == int(edge)
    ]
    marks = [
        *bars,
        element("polyline", points=points, class_="t"),
        element("path", d=f"M0 {floor}h{width}", class_="a"),
        *ticks,
        element("text", f"< {_signed(edges[0])}", x=0, y=floor + 16),
        element("text", f"> {_signed(edges[-1])}", x=width, y=floor + 16, class_="e"),
    ]
    return _chart((width, height), title, marks)


def _middles(edges: Sequence[float], half: float) -> list[float]:
    """Twice as many points as bars, so that the curve looks smooth."""
    count = 2 * (len(edges) - 1) - 1
    return [edges[0] + half * (1 + i) for i in range(count)]


def _signed(number: float) -> str:
    return f"{number:+g}".replace("-", "−") if number else "0"


def _span(position: int, edges: Sequence[float]) -> str:
    if position == 0:
        return f"below {_signed(edges[0])}"
    if position == len(edges):
        return f"{_signed(edges[-1])} and more"
    return f"{_signed(edges[position - 1])} to {_signed(edges[position])}"


def stacked_bar(parts: Sequence[tuple[str, float]], *, title: str) -> Markup:
    """Parts of a whole, each with a class of its own."""
    width, height = 640, 22
    whole = sum(amount for _, amount in parts) or 1
    marks, start = [], 0.0
    for class_, amount in parts:
        span = width * amount / whole
        if span:
            marks.append(element("rect", x=start, y=0, width=span, height=height, class_=class_))
        start += span
    return _chart((width, height), title, marks)
