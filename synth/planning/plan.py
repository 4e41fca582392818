"""The division of a release's budget before the data are read (docs/privacy.md, section 4).

Amounts are integer units of 1e-12 rho and are rounded down, so the parts never exceed the whole.
The preview shows the same plan that the worker spends by: there is no second calculation.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scrim.spec.errors import DomainTooLarge, SpecError
from scrim.spec.mechanism import MECHANISMS, Gaussian, MechanismSpec, PublicDataSpec, Screen
from scrim.spec.mechanism.base import ROW_TYPES, TWO_LEVEL_TYPES
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from scrim.spec.workload import (
    NUMBER_OF_GROUPS,
    Block,
    Blocks,
    MarginalBlock,
    PartBlock,
    WorkloadItem,
)
from scrim.spec.workload.marginals import MAX_TABLE_CELLS, is_too_large
from synth.planning import gaussian
from synth.planning.alignment import shared_schema
from synth.planning.binning import Binning, bins_share, plan_binning
from synth.planning.certification import Certification, plan_certification
from synth.planning.columns import Queries, list_queries, project_to_released, promised
from synth.planning.duration import expected_seconds
from synth.planning.memory import ANSWER_BYTES, drawn_bytes, queries_of
from synth.planning.pace import columns_of
from synth.planning.planner import planner_of
from synth.planning.redraws import RedrawCost, redraw_cost, refuse_redraws
from synth.planning.spending import ROW_COUNT_SHARE, Plan, Setting


@dataclass(frozen=True)
class Split:
    """The first division of a job's budget: the row count, edges of bins, the screen, certify, and the
    mechanism."""

    row_count: int
    bins: int
    screen: int
    certify: int
    mechanism: int


def split_budget(
    release: ReleaseSpec,
    schema: Schema,
    protection: Protection,
    units: int,
    *,
    row_count_share: float = ROW_COUNT_SHARE,
) -> Split:
    """Set aside the cost of counting rows, placing edges, screening and certifying; the mechanism gets the
    rest."""
    counted, certified = _is_count_private(schema, protection), release.outputs.certify
    screened = screen_of(release)
    row_count = math.floor(units * row_count_share) if counted else 0
    screen = math.floor(units * screened.share) if screened else 0
    certify = math.floor(units * certified.share) if certified else 0
    bins = math.floor(units * bins_share(release, schema))
    mechanism = units - row_count - bins - screen - certify
    # Every operation that will happen needs at least one unit.
    if (
        mechanism < 1
        or row_count < counted
        or screen < (screened is not None)
        or certify < (certified is not None)
    ):
        raise SpecError(
            "the budget is too small to be divided; increase it, or screen, certify or place bins with a "
            "smaller share"
        )
    return Split(
        row_count=row_count, bins=bins, screen=screen, certify=certify, mechanism=mechanism
    )


def _row_count_share(mechanism: MechanismSpec, setting: Setting) -> float:
    if isinstance(mechanism, Gaussian):
        return gaussian.row_count_share(mechanism, setting)
    return ROW_COUNT_SHARE


def _is_count_private(schema: Schema, protection: Protection) -> bool:
    """Whether a unit changes the number of rows (of groups, if rows are linked)."""
    if schema.is_linked:
        return NUMBER_OF_GROUPS.sensitivity(schema, protection).linf > 0
    return protection.row_count_sensitivity > 0


def screen_of(release: ReleaseSpec) -> Screen | None:
    """The screen of the public data that the release pays for first, if any."""
    return release.mechanism.screen if isinstance(release.mechanism, PublicDataSpec) else None


@dataclass(frozen=True)
class ReleasePlan:
    """Everything that is decided about a release before the data are read."""

    schema: Schema
    """The schema of the released columns."""
    left_out: list[str]
    """The declared columns that are not released."""
    split: Split
    binning: Binning | None
    """What places the edges of adaptive bins, if there are any."""
    asked: Blocks
    measured: list[Block]
    """The blocks that may be measured: those of `mechanism.measure`, or the mechanism's choice."""
    spending: Plan
    certification: Certification | None
    """What is certified of the released rows, if requested."""
    memory_bytes: int | None
    """Estimated memory of the fit; None if it does not follow from public numbers."""
    output_bytes: int
    """Estimated memory for drawing the rows, answering, and writing both to files."""
    seconds: float | None
    """Expected processor seconds of the fit, the rows and the answers; None if they are not known."""
    redraws: RedrawCost | None
    """What further sets of rows cost, if they are requested."""

    @property
    def held_bytes(self) -> int:
        """Memory that stays in use while further sets of rows are computed."""
        return 0 if self.redraws is None else self.redraws.memory_bytes or 0

    @property
    def peak_bytes(self) -> int | None:
        """The larger of fit and outputs: the fit's memory is freed before rows are drawn."""
        if self.memory_bytes is None:
            return None
        return max(self.memory_bytes, self.output_bytes) + self.held_bytes


def plan(
    release: ReleaseSpec,
    schema: Schema,
    protection: Protection,
    units: int,
    *,
    public: Schema | None = None,
    queries: Queries | None = None,
    columns: Sequence[str] | None = None,
) -> ReleasePlan:
    """Plan a release of a table with that declared schema, or refuse one that cannot work before any
    budget is spent.

    `queries` are those of the release, if they were already listed; `columns` are the released columns, if
    they were already decided.
    """
    mechanism, declared = release.mechanism, schema
    refuse_unsupported(release, declared, protection)
    queries = queries or list_queries(release, declared)
    asked, named = queries.asked, queries.named
    schema = project_to_released(release, declared, queries, columns=columns)
    _refuse_unbinned(release, schema)
    for blocks in (asked, named):
        refuse_unreadable(blocks, mechanism)
    whole = Setting(schema, protection, units, release.expected_rows, asked)
    split = split_budget(
        release, schema, protection, units, row_count_share=_row_count_share(mechanism, whole)
    )
    setting = replace(
        whole,
        units=split.mechanism,
        promised=promised(release, schema, asked),
        row_count=split.row_count,
    )
    planner = planner_of(mechanism)
    measured = _with_promised(
        named or list(planner.choose_measured(mechanism, setting)), setting.promised
    )
    _refuse_impossible(release, schema, asked, measured)
    _refuse_unsuited_public_data(release, schema, public, [*asked, *measured])
    _refuse_empty_screen(release, schema, public, asked)
    released = set(schema.names)
    spending = planner.plan(mechanism, measured, setting)
    refuse_redraws(release, spending)
    memory_bytes = planner.memory_bytes(mechanism, measured, setting)
    output_bytes = _output_bytes(release, schema, asked)
    return ReleasePlan(
        schema=schema,
        left_out=[name for name in declared.names if name not in released],
        split=split,
        binning=plan_binning(split.bins, schema),
        asked=asked,
        measured=measured,
        spending=spending,
        certification=plan_certification(split.certify, asked, schema) if split.certify else None,
        memory_bytes=memory_bytes,
        output_bytes=output_bytes,
        redraws=redraw_cost(release, schema, fit_bytes=memory_bytes, output_bytes=output_bytes),
        seconds=expected_seconds(release, measured, spending, setting),
    )


def _with_promised(measured: Sequence[Block], wanted: Iterable[Block]) -> list[Block]:
    """Add the promised blocks that no whole block covers."""
    covered = set(columns_of(block for block in measured if block.is_whole))
    return [*measured, *(b for b in wanted if not covered.issuperset(b.attributes))]


def _output_bytes(release: ReleaseSpec, schema: Schema, asked: list[Block]) -> int:
    rows = 0 if release.synthetic_rows is None else drawn_bytes(release.synthetic_rows, schema)
    answers = ANSWER_BYTES * queries_of(asked, schema) if release.outputs.answers else 0
    return rows + answers


def refuse_unsupported(release: ReleaseSpec, schema: Schema, protection: Protection) -> None:
    """Refuse what a mechanism cannot do, whatever the queries are; they need not be listed for that."""
    mechanism = release.mechanism
    _refuse_other_levels(mechanism, schema, protection)
    _refuse_unbinned(release, schema.project(set(release.outputs.columns or ())))
    items = (*release.workload, *(mechanism.measure or ()))
    refuse_types(items, mechanism, linked=schema.is_linked)


def _refuse_other_levels(mechanism: MechanismSpec, schema: Schema, protection: Protection) -> None:
    """Refuse mechanisms for linked tables on a single table, and vice versa."""
    if not mechanism.works_on(linked=schema.is_linked):
        usable = [m for m in MECHANISMS if m.works_on(linked=schema.is_linked)]
        names = ", ".join(m.catalogue_name() for m in usable)
        raise SpecError(
            f"{mechanism.catalogue_name()} works on one table of rows, but the dataset has groups and "
            f"individuals; name one of the two in `table`, or use a mechanism for both: {names}"
            if schema.is_linked
            else f"{mechanism.catalogue_name()} works on groups of individuals, but this is one table "
            f"of rows; use another mechanism: {names}"
        )
    if schema.is_linked and protection.unit == "row":
        raise SpecError(
            "the unit row cannot protect people in linked groups and individuals; use a population whose "
            "unit is household or person"
        )


def refuse_unreadable(blocks: Blocks, mechanism: MechanismSpec) -> None:
    """Refuse queries about numbers without the bins that the mechanism's model needs."""
    problem = blocks.unbinned or (blocks.unaligned if mechanism.needs_bins else None)
    if problem is not None:
        raise SpecError(problem)


def refuse_types(items: Iterable[WorkloadItem], mechanism: MechanismSpec, *, linked: bool) -> None:
    """Refuse items of a type that the mechanism's model cannot answer."""
    for item in items:
        if not mechanism.can_answer(item.type, linked=linked):
            able = [m for m in MECHANISMS if m.can_answer(item.type, linked=linked)]
            types = ", ".join(TWO_LEVEL_TYPES if linked else ROW_TYPES)
            remedy = (
                f"mechanisms that can: {', '.join(m.catalogue_name() for m in able)}"
                if able
                else f"about {'groups of individuals' if linked else 'one table'}, ask for {types}"
            )
            raise SpecError(f"{mechanism.catalogue_name()} cannot answer {item.type}; {remedy}")


def _refuse_impossible(
    release: ReleaseSpec, schema: Schema, asked: Blocks, measured: list[Block]
) -> None:
    blocks = [*asked, *measured]
    refuse_large_blocks(schema, blocks)
    if not release.mechanism.releases_rows:
        _refuse_unmeasured(release, [*asked, *gaussian.denominators(asked)], measured)


def _refuse_unsuited_public_data(
    release: ReleaseSpec, schema: Schema, public: Schema | None, blocks: list[Block]
) -> None:
    mechanism = release.mechanism
    if not isinstance(mechanism, PublicDataSpec):
        if public is not None:
            raise SpecError(f"{mechanism.name} uses no public data; leave public_dataset_id out")
        return
    if public is None:
        raise SpecError(f"{mechanism.name} needs a public dataset; give public_dataset_id")
    shared = {column.name for column in shared_schema(schema, public).attributes}
    missing = [name for name in columns_of(blocks) if name not in shared]
    if missing and mechanism.needs_public_columns:
        raise SpecError(
            f"{mechanism.name} reweights the public rows, but they lack {', '.join(missing)}; ask "
            "about other columns, give public data that has these columns, or use gem_pub, which "
            "accepts public data with fewer columns"
        )


def _refuse_empty_screen(
    release: ReleaseSpec, schema: Schema, public: Schema | None, asked: list[Block]
) -> None:
    if screen_of(release) is None or public is None:
        return
    shared = {column.name for column in shared_schema(schema, public).attributes}
    if not any(shared.issuperset(block.attributes) for block in asked):
        raise SpecError(
            "the screen compares marginals whose columns are all in the public data, but the workload "
            "has none; leave mechanism.screen out, or ask about columns of the public data"
        )


def _refuse_unbinned(release: ReleaseSpec, schema: Schema) -> None:
    if not (release.mechanism.needs_bins and release.mechanism.releases_rows):
        return
    for column in schema.attributes:
        if column.name not in schema.sizes:
            names = ", ".join(
                m.catalogue_name() for m in MECHANISMS if m.releases_rows and not m.needs_bins
            )
            raise SpecError(
                f"column {column.name!r} needs bins: {release.mechanism.name} releases rows of discrete "
                f"cells and draws numbers inside them; without bins, use {names}"
            )


def refuse_large_blocks(schema: Schema, blocks: list[Block]) -> None:
    """Refuse a table, or a list of predicates, that is too long for any mechanism."""
    for block in blocks:
        if is_too_large(block, schema):
            raise DomainTooLarge(
                f"({', '.join(block.attributes)}) has {block.size(schema):,} queries, more than the limit "
                f"of {MAX_TABLE_CELLS:,}; name fewer columns, or declare wider bins"
            )


def _refuse_unmeasured(release: ReleaseSpec, asked: list[Block], measured: list[Block]) -> None:
    answerable = _answerable(asked, measured)
    for block in asked:
        if block not in answerable:
            raise SpecError(
                f"{release.mechanism.name} answers only from its measurements, and none covers "
                f"({', '.join(block.attributes)}); add it to mechanism.measure"
            )


def _answerable(asked: list[Block], measured: list[Block]) -> set[Block]:
    """The measured blocks, and the asked marginals whose columns some measured table contains."""
    # One bit for each measured table: a marginal is covered if its columns share a bit.
    holding: dict[str, int] = defaultdict(int)
    for position, block in enumerate(measured):
        if isinstance(block, MarginalBlock | PartBlock):
            for name in block.attributes:
                holding[name] |= 1 << position
    found = set(measured)
    for block in asked:
        if isinstance(block, MarginalBlock):
            covering = -1
            for name in block.attributes:
                covering &= holding[name]
            if covering:
                found.add(block)
    return found
