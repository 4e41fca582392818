"""How a release's budget is divided before anything is touched (docs/privacy.md, section 4).

Amounts are integer units of 1e-12 rho and are rounded down, so the parts never exceed the whole.
The worker spends by this plan and the preview shows it: there is no second calculation.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from synth.spec.alignment import shared_schema
from synth.spec.errors import DomainTooLarge, SpecError
from synth.spec.mechanism import MAX_CELLS, MECHANISMS, PublicDataSpec, Screen
from synth.spec.population import Protection
from synth.spec.release import ReleaseSpec
from synth.spec.schema import CategoricalColumn, Schema

ROW_COUNT_SHARE = 0.01


@dataclass(frozen=True)
class Split:
    """The first division of a job's budget: what surrounds the mechanism, and the mechanism."""

    row_count: int
    screen: int
    certify: int
    mechanism: int


def split_budget(release: ReleaseSpec, protection: Protection, units: int) -> Split:
    """Set aside what counting rows, screening and certifying cost; the rest is the mechanism's."""
    counted, certified = protection.row_count_sensitivity > 0, release.outputs.certify
    screened = screen_of(release)
    row_count = math.floor(units * ROW_COUNT_SHARE) if counted else 0
    screen = math.floor(units * screened.share) if screened else 0
    certify = math.floor(units * certified.share) if certified else 0
    mechanism = units - row_count - screen - certify
    # Every operation that will happen needs at least one unit.
    if (
        mechanism < 1
        or row_count < counted
        or screen < (screened is not None)
        or certify < (certified is not None)
    ):
        raise SpecError(
            "the budget is too small to be divided; ask for more, or screen or certify a smaller share"
        )
    return Split(row_count=row_count, screen=screen, certify=certify, mechanism=mechanism)


def screen_of(release: ReleaseSpec) -> Screen | None:
    """The look at the public data that the release pays for first, if it does."""
    return release.mechanism.screen if isinstance(release.mechanism, PublicDataSpec) else None


def plan(
    release: ReleaseSpec,
    schema: Schema,
    protection: Protection,
    units: int,
    *,
    public: Schema | None = None,
) -> Split:
    """Divide the budget, or refuse, before anything is spent, a release that cannot work."""
    check(release, schema, public=public)
    split = split_budget(release, protection, units)
    release.mechanism.plan(measured_marginals(release, schema), split.mechanism)
    return split


def measured_marginals(release: ReleaseSpec, schema: Schema) -> list[tuple[str, ...]]:
    """The marginals the mechanism may measure: its own `measure`, or else its own choice."""
    items = release.mechanism.measure or release.workload
    named = list(dict.fromkeys(marginal for item in items for marginal in item.expand(schema)))
    return named if release.mechanism.measure else release.mechanism.choose_measured(named)


def check(release: ReleaseSpec, schema: Schema, *, public: Schema | None = None) -> None:
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
    _refuse_unsuited_public_data(release, schema, public, list(used))
    _refuse_empty_screen(release, schema, public, asked)


def _refuse_unsuited_public_data(
    release: ReleaseSpec, schema: Schema, public: Schema | None, used: list[str]
) -> None:
    mechanism = release.mechanism
    if not isinstance(mechanism, PublicDataSpec):
        if public is not None:
            raise SpecError(f"{mechanism.name} uses no public data; give none")
        return
    if public is None:
        raise SpecError(f"{mechanism.name} needs a public dataset; give public_dataset_id")
    shared = {column.name for column in shared_schema(schema, public).attributes}
    missing = [name for name in used if name not in shared]
    if missing and mechanism.needs_public_columns:
        raise SpecError(
            f"{mechanism.name} reweights the public rows, and they lack {', '.join(missing)}; ask "
            "about other columns, give public data that has these, or use gem_pub, which can start "
            "from public data that lacks some"
        )


def _refuse_empty_screen(
    release: ReleaseSpec, schema: Schema, public: Schema | None, asked: list[tuple[str, ...]]
) -> None:
    if screen_of(release) is None or public is None:
        return
    shared = {column.name for column in shared_schema(schema, public).attributes}
    if not any(shared.issuperset(marginal) for marginal in asked):
        raise SpecError(
            "the screen compares marginals whose columns are all public, and the workload has none; "
            "leave mechanism.screen out, or ask about such columns"
        )


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
