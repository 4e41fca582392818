"""How a release's budget is divided before anything is touched (docs/privacy.md, section 4).

Amounts are integer units of 1e-12 rho and are rounded down, so the parts never exceed the whole.
The worker spends by this plan and the preview shows it: there is no second calculation.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from synth.spec.errors import DomainTooLarge, SpecError
from synth.spec.mechanism import MAX_CELLS, MECHANISMS
from synth.spec.population import Protection
from synth.spec.release import ReleaseSpec
from synth.spec.schema import CategoricalColumn, Schema

ROW_COUNT_SHARE = 0.01


@dataclass(frozen=True)
class Split:
    """The first division of a job's budget: counting rows, certifying, and the mechanism itself."""

    row_count: int
    certify: int
    mechanism: int


def split_budget(release: ReleaseSpec, protection: Protection, units: int) -> Split:
    """Set aside what counting rows and certifying cost; the rest is the mechanism's."""
    counted, asked = protection.row_count_sensitivity > 0, release.outputs.certify
    row_count = math.floor(units * ROW_COUNT_SHARE) if counted else 0
    certify = math.floor(units * asked.share) if asked else 0
    mechanism = units - row_count - certify
    # Every operation that will happen needs at least one unit.
    if mechanism < 1 or row_count < counted or certify < (asked is not None):
        raise SpecError(
            "the budget is too small to be divided; ask for more, or certify a smaller share"
        )
    return Split(row_count=row_count, certify=certify, mechanism=mechanism)


def plan(release: ReleaseSpec, schema: Schema, protection: Protection, units: int) -> Split:
    """Divide the budget, or refuse, before anything is spent, a release that cannot work."""
    check(release, schema)
    split = split_budget(release, protection, units)
    release.mechanism.plan(len(measured_marginals(release, schema)), split.mechanism)
    return split


def measured_marginals(release: ReleaseSpec, schema: Schema) -> list[tuple[str, ...]]:
    """The marginals the mechanism may measure: its own `measure`, or else its own choice."""
    items = release.mechanism.measure or release.workload
    named = list(dict.fromkeys(marginal for item in items for marginal in item.expand(schema)))
    return named if release.mechanism.measure else release.mechanism.choose_measured(named)


def check(release: ReleaseSpec, schema: Schema) -> None:
    """Refuse, before anything is spent, a release that its mechanism cannot carry out."""
    asked = [marginal for item in release.workload for marginal in item.expand(schema)]
    measured = measured_marginals(release, schema)
    used = dict.fromkeys(name for marginal in (*asked, *measured) for name in marginal)
    for name in used:
        column = schema.attribute(name)
        if not isinstance(column, CategoricalColumn) and column.bins is None:
            raise SpecError(f"column {name!r} needs bins: marginals are tables of discrete cells")
    if release.mechanism.releases_rows:
        _refuse_unbinned(release, schema)
        _refuse_large_domain(release, schema, list(used))
    else:
        _refuse_unmeasured(release, asked, measured)
    _refuse_large_marginals(schema, list(used), dict.fromkeys((*asked, *measured)))


def _refuse_unbinned(release: ReleaseSpec, schema: Schema) -> None:
    for column in schema.attributes:
        if not isinstance(column, CategoricalColumn) and column.bins is None:
            raise SpecError(
                f"column {column.name!r} needs bins: {release.mechanism.name} releases rows of discrete "
                "cells and draws numbers inside them"
            )


def _refuse_large_marginals(
    schema: Schema, used: list[str], marginals: Iterable[tuple[str, ...]]
) -> None:
    sizes = {name: schema.attribute(name).size for name in used}
    for marginal in marginals:
        cells = math.prod(sizes[name] for name in marginal)
        if cells > MAX_CELLS:
            raise DomainTooLarge(
                f"the marginal ({', '.join(marginal)}) has {cells:,} cells, more than {MAX_CELLS:,}; "
                "name fewer columns, or declare wider bins"
            )


def _refuse_large_domain(release: ReleaseSpec, schema: Schema, used: list[str]) -> None:
    if not release.mechanism.needs_histogram:
        return
    cells = math.prod(schema.attribute(name).size for name in used)
    if cells > MAX_CELLS:
        names = ", ".join(m.catalogue_name() for m in MECHANISMS if not m.needs_histogram)
        raise DomainTooLarge(
            f"{release.mechanism.name} keeps one weight for each of the {cells:,} combinations of the "
            f"{len(used)} columns it was asked about; it can hold {MAX_CELLS:,}. Ask about fewer "
            f"columns, declare wider bins, or use a mechanism without a histogram: {names}"
        )


def _refuse_unmeasured(
    release: ReleaseSpec, asked: list[tuple[str, ...]], measured: list[tuple[str, ...]]
) -> None:
    # One bit per measured marginal: a marginal is covered where its columns have a bit in common.
    holding: dict[str, int] = defaultdict(int)
    for position, marginal in enumerate(measured):
        for name in marginal:
            holding[name] |= 1 << position
    for marginal in asked:
        covering = -1
        for name in marginal:
            covering &= holding[name]
        if not covering:
            raise SpecError(
                f"{release.mechanism.name} answers from its measurements alone, and none covers "
                f"({', '.join(marginal)}); add it to mechanism.measure"
            )
