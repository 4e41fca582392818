"""Fill the template, in the order of the page."""

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from scrim.spec.budget import epsilon_of_units
from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Schema
from scrim.spec.workload.bins import has_bin_for_each_number
from synth.basis import Basis
from synth.run import FinishedRelease
from synth.table.linking import groups_in
from worker.report import descriptions, svg, texts
from worker.report.about import About
from worker.report.balance import Balance
from worker.report.columns import (
    Dependence,
    Distribution,
    dependences,
    distributions,
)
from worker.report.fitness import fitness, relation_map
from worker.report.guarantee import WRONG, right_at_most
from worker.report.residuals import EDGES, Residuals, columns_of, measured_pairs, residuals

_FOLDER = Path(__file__).parent
STRONGEST = 15
"""Number of pairs of columns that are listed by name."""
_PURPOSES = {
    "rows": "counting the rows",
    "select": "choosing what to measure",
    "measure": "measuring",
    "hedge": "drawing queries",
    "best_mixture": "screening the public data",
    "certify": "bounding the error of the released rows",
}
_BASES: dict[Basis, str] = {
    "measured": "Measured, or a sum of measured cells",
    "model": "Inferred by the model from other measurements",
    "independent": "Columns that no measurement relates to each other",
}
_IN_ROWS = {"rows", "measure"}
"""The operations whose noise is stated in rows."""


def render(release: FinishedRelease, about: About) -> bytes:
    """The report as one HTML file."""
    style = (_FOLDER / "report.css").read_text()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    reserved = release.certificate["rho_units_reserved"]
    spent = release.certificate["rho_units"]
    declared = about.declared or release.model.schema
    page = (
        _environment()
        .get_template("report.html")
        .render(
            about=about,
            style=Markup(style),
            style_digest=digest,
            people=descriptions.people(about.protection),
            asked=descriptions.asked(about.spec.workload, declared),
            measure=descriptions.asked(about.spec.mechanism.measure or [], declared),
            mechanism=about.spec.mechanism,
            summary=descriptions.summary(about.spec.mechanism),
            parameters=descriptions.parameters(about.spec.mechanism),
            certificate=release.certificate,
            reserved=reserved,
            epsilon_reserved=release.certificate["epsilon_reserved"][f"{about.delta:g}"],
            spent=spent,
            epsilon=release.certificate["epsilon"][f"{about.delta:g}"],
            is_exact=release.certificate["accounting"] == "exact_gaussian",
            guesses=[(wrong, right_at_most(reserved, wrong)) for wrong in WRONG],
            rows_found=release.model.estimated_rows,
            rows_are=release.model.schema.row_noun,
            operations=_operations(release.certificate["operations"]),
            account=_account(about, spent),
            shown=_shown_rows(release),
            fitness=fitness(release),
            answers=_answers(release),
            fit=_fit(release),
            caveats=_caveats(release),
        )
    )
    return page.encode()


@cache
def _environment() -> Environment:
    """Build the template environment: values are escaped and visible; a missing name is an error."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=texts.visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        counted=texts.counted,
        percent=texts.percent,
        percent_at_most=texts.percent_at_most,
        power=texts.power,
        relation_map=relation_map,
        rho_left=texts.rho_left,
        rho_spent=texts.rho_spent,
        rounded_up=texts.rounded_up,
        shortened=texts.shortened,
        size_of=texts.size_of,
        whole=texts.whole,
    )
    return environment


@dataclass(frozen=True)
class _Operations:
    """All operations of one kind."""

    purpose: str
    number: int
    units: int
    share: float
    noise: str
    """The standard deviation of the noise in rows, smallest and largest."""


def _operations(operations: Sequence[Mapping[str, Any]]) -> list[_Operations]:
    total = sum(each["rho_units"] for each in operations)
    found = []
    for kind in dict.fromkeys(each["kind"] for each in operations):
        mine = [each for each in operations if each["kind"] == kind]
        units = sum(each["rho_units"] for each in mine)
        scales = [each["scale"] for each in mine] if kind in _IN_ROWS else []
        noise = dict.fromkeys(f"{s:,.1f}" for s in (min(scales), max(scales))) if scales else ()
        purpose = _PURPOSES.get(kind, kind)
        share = units / total if total else 0.0
        found.append(_Operations(purpose, len(mine), units, share, " to ".join(noise)))
    return found


@dataclass(frozen=True)
class _Account:
    """The population's account before the release and with it, in units of 1e-12 rho."""

    before: Balance
    spent_with: int
    unspent_before: int
    unspent_with: int
    epsilon_before: float
    epsilon_with: float
    chart: Markup


def _account(about: About, spent: int) -> _Account | None:
    before = about.balance
    if before is None:
        return None
    spent_with = before.spent + spent
    unspent_with = before.cap - spent_with
    parts = [("p1", before.spent), ("p2", spent), ("p3", unspent_with)]
    title = (
        f"Of the cap, {texts.percent(before.spent / before.cap)} was spent at the midnight before "
        f"this release, {texts.percent(spent / before.cap)} by it, and "
        f"{texts.percent(unspent_with / before.cap)} by neither."
    )
    return _Account(
        before=before,
        spent_with=spent_with,
        unspent_before=before.cap - before.spent,
        unspent_with=unspent_with,
        epsilon_before=epsilon_of_units(before.spent, about.delta),
        epsilon_with=epsilon_of_units(spent_with, about.delta),
        chart=svg.stacked_bar(parts, title=title),
    )


@dataclass(frozen=True)
class _Rows:
    """The charts and tables of the released rows."""

    number: int
    groups: int | None
    """Number of groups of the rows, if they are linked."""
    columns: int
    charts: list[tuple[Distribution, Markup]]
    heat_map: Markup | None
    strongest: list[tuple[str, str, float, bool]]
    pair_rows: int

    @property
    def is_cut(self) -> bool:
        """Whether only the first columns are shown."""
        return self.columns > len(self.charts)


def _shown_rows(release: FinishedRelease) -> _Rows | None:
    rows, schema = release.rows, release.model.schema
    if rows is None:
        return None
    columns = distributions(schema, rows)
    pairs = dependences(columns)
    together = measured_pairs(release.measurements)
    measured = {
        (pair.first, pair.second)
        for pair in pairs
        if frozenset((columns[pair.first].name, columns[pair.second].name)) in together
    }
    strongest = sorted(pairs, key=lambda pair: -pair.strength)[:STRONGEST]
    groups = groups_in(rows, schema)
    return _Rows(
        number=len(next(iter(rows.values()))),
        groups=None if groups is None else len(groups),
        columns=len(schema.attributes),
        charts=[(column, _column_chart(column)) for column in columns],
        heat_map=_heat_map(columns, pairs, measured) if pairs else None,
        strongest=[
            (
                columns[pair.first].name,
                columns[pair.second].name,
                pair.strength,
                (pair.first, pair.second) in measured,
            )
            for pair in strongest
        ],
        pair_rows=len(columns[0].bars),
    )


def _column_chart(column: Distribution) -> Markup:
    highest = max(range(len(column.shares)), key=lambda i: column.shares[i])
    title = (
        f"{texts.shortened(column.name, 60)}: {texts.counted(len(column.shares), 'bar')}, the highest "
        f"is {texts.shortened(column.labels[highest], 60)} with {texts.percent(column.shares[highest])}"
    )
    if column.ends is None:
        return svg.bar_chart(
            column.labels, column.shares, is_gathered=column.is_gathered, title=title
        )
    return svg.histogram(column.labels, column.shares, ends=column.ends, title=title)


def _heat_map(
    columns: Sequence[Distribution], pairs: Sequence[Dependence], measured: set[tuple[int, int]]
) -> Markup:
    return svg.heat_map(
        [column.name for column in columns],
        [(pair.first, pair.second, pair.strength) for pair in pairs],
        measured,
        title=f"Cramér's V of all pairs of {len(columns)} columns; the strongest are in the table",
    )


@dataclass(frozen=True)
class _Answers:
    """The number of answers, what they are based on, and their standard errors if known."""

    number: int
    bases: list[tuple[str, int]]
    """How many answers have each basis, in words."""
    errors: list[tuple[str, float, float]] | None
    """The smallest, the median and the largest standard error: of the fractions, of the counts."""


def _answers(release: FinishedRelease) -> _Answers | None:
    answers = release.answers
    if answers is None:
        return None
    number = len(answers.items)
    times = Counter(answers.bases)
    bases = [(words, times[basis]) for basis, words in _BASES.items() if times[basis]]
    if answers.standard_errors is None or answers.count_standard_errors is None:
        return _Answers(number, bases, None)
    fractions, counts = np.sort(answers.standard_errors), np.sort(answers.count_standard_errors)
    positions = {"Smallest": 0, "Median": number // 2, "Largest": -1}
    return _Answers(
        number,
        bases,
        [(name, float(fractions[i]), float(counts[i])) for name, i in positions.items()],
    )


@dataclass(frozen=True)
class _Fit:
    """How far the model is from its measurements, in numbers and as a plot."""

    found: Residuals
    chart: Markup


def _fit(release: FinishedRelease) -> _Fit | None:
    found = residuals(release.model, release.measurements)
    if found is None:
        return None
    title = (
        f"{texts.percent(found.within_two)} of {texts.counted(found.number, 'value')} lie within two "
        "standard deviations of the noise"
    )
    return _Fit(found, svg.residual_plot(found.histogram, EDGES.tolist(), title=title))


@dataclass(frozen=True)
class _Caveats:
    """The values of this release in the section "What not to conclude"."""

    small: float | None
    """Counts below this number of rows may be only noise."""
    unasked: list[str]
    """Columns that no measurement covers."""
    binned: list[str]
    """Numeric columns that the model represents only by their bins."""


def _count_noise(release: FinishedRelease) -> list[float]:
    """The noise of counts, smallest first: of noisy answers, or of the measurements of a model."""
    answers = release.answers
    if release.rows is None and answers is not None and answers.count_standard_errors is not None:
        return sorted(error for error in answers.count_standard_errors.tolist() if error > 0)
    return sorted(m.sigma for m in release.measurements if m.sigma > 0)


def _caveats(release: FinishedRelease) -> _Caveats:
    schema: Schema = release.model.schema
    noisy = _count_noise(release)
    told = columns_of(release.measurements)
    return _Caveats(
        small=2 * noisy[len(noisy) // 2] if noisy else None,
        unasked=[column.name for column in schema.attributes if column.name not in told],
        binned=[
            column.name
            for column in schema.attributes
            if not isinstance(column, LabelledColumn)
            and column.bins is not None
            and not has_bin_for_each_number(column.line)
            and release.model.model.kind != "rows"
        ],
    )
