"""The expected accuracy of a release, and warnings for its curator, from public numbers alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scrim.spec.budget import rho_of_units
from scrim.spec.mechanism import AdaptiveSpec, Gaussian, MechanismSpec
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from scrim.spec.workload import Block
from synth.planning.candidates import MAX_MEASURED, left_out
from synth.planning.choice import Resolved
from synth.planning.gaussian import answer_variances
from synth.planning.pace import count_candidates
from synth.planning.plan import ReleasePlan
from synth.planning.spending import AnnealedRounds, Draws, OneShot, Rounds, Setting
from synth.planning.subject import Subject

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""The mean of |x| under a standard Gaussian."""
NAMED_COLUMNS = 10
"""Largest number of columns that a warning names."""
NAMED_PAIRS = 5
"""Largest number of pairs that a warning names."""


@dataclass(frozen=True)
class ItemNoise:
    """The expected noise and error of one item of the workload."""

    type: str
    queries: int
    sigma: float | None
    """Standard deviation of the noise on each measured count; None if no count is measured. If answers are
    released without rows, the root mean square of their standard errors, in counts."""
    expected_error: float | None
    """Mean absolute error that this noise causes, in counts."""


@dataclass(frozen=True)
class Forecast:
    """The expected accuracy of a release."""

    items: Sequence[ItemNoise]
    operations: int
    """The largest number of operations on the data that spend budget."""
    warnings: Sequence[str]
    """Limits of the release that the curator should know."""


def forecast(resolved: Resolved, subject: Subject) -> Forecast:
    """Forecast the accuracy of a planned release."""
    release, planned = resolved.release, resolved.plan
    split, schema = planned.split, subject.schema
    items = (
        _items_of_answers(release.mechanism, resolved, subject)
        if isinstance(release.mechanism, Gaussian)
        else _items_of_model(resolved, subject)
    )
    around = (split.row_count > 0) + (split.screen > 0)
    if planned.certification is not None:
        around += planned.certification.operations(schema, subject.protection)
    return Forecast(
        items=items,
        operations=_operations(release, planned, schema) + around,
        warnings=[
            *_warnings(release, planned),
            *_warnings_of_groups(planned, subject),
            *_warnings_of_columns(planned),
        ],
    )


def _items_of_model(resolved: Resolved, subject: Subject) -> list[ItemNoise]:
    """The noise of the measurements, which is the same for every item."""
    release, planned = resolved.release, resolved.plan
    sigma = _sigma(release, planned, subject)
    error = None if sigma is None else sigma * MEAN_ABSOLUTE
    return [
        ItemNoise(item.type, queries, sigma, error)
        for item, queries in zip(release.workload, planned.asked.queries_by_item, strict=True)
    ]


def _items_of_answers(mechanism: Gaussian, resolved: Resolved, subject: Subject) -> list[ItemNoise]:
    """The standard errors of the answers, which follow from the plan."""
    release, planned = resolved.release, resolved.plan
    assert isinstance(planned.spending, OneShot)
    setting = Setting(
        subject.schema,
        subject.protection,
        planned.split.mechanism,
        release.expected_rows,
        planned.asked,
        row_count=planned.split.row_count,
    )
    variance_of = answer_variances(mechanism, planned.measured, setting, planned.spending)
    items = []
    for item, blocks in zip(release.workload, planned.asked.items, strict=True):
        sizes = [block.size(subject.schema) for block in blocks]
        queries = sum(sizes)
        square = sum(size * variance_of[b] for size, b in zip(sizes, blocks, strict=True))
        root = sum(size * variance_of[b] ** 0.5 for size, b in zip(sizes, blocks, strict=True))
        error = root / queries * MEAN_ABSOLUTE
        items.append(ItemNoise(item.type, queries, math.sqrt(square / queries), error))
    return items


def _operations(release: ReleaseSpec, planned: ReleasePlan, schema: Schema) -> int:
    """The largest number of operations of the mechanism on the data."""
    spending = planned.spending
    if isinstance(spending, OneShot):
        return len(spending.measure)
    if isinstance(spending, Draws):
        return len(spending.prices)
    assert isinstance(release.mechanism, AdaptiveSpec)
    per_round = min(
        spending.per_round, count_candidates(release.mechanism, planned.measured, schema)
    )
    first = len(spending.public) + len(spending.opened)
    return first + spending.rounds * (1 + per_round)


def _sigma(release: ReleaseSpec, planned: ReleasePlan, subject: Subject) -> float | None:
    """The noise scale D2 / sqrt(2 rho) of a measurement; the largest one if they differ."""
    if isinstance(planned.spending, Draws):
        return None  # no count is measured
    # Many blocks are alike, so each pair of sensitivity and price is computed once.
    found = set()
    for position, block in enumerate(planned.measured):
        if isinstance(planned.spending, OneShot):
            units, singly = planned.spending.measure[position], False
        else:
            units = planned.spending.measure
            singly = _is_measured_singly(block, release.mechanism)
        moved = block.sensitivity(subject.schema, subject.protection)
        found.add((moved.linf**2 if singly else moved.l2_squared, units))
    return math.sqrt(max(squared / (2 * rho_of_units(units)) for squared, units in found))


def _is_measured_singly(block: Block, mechanism: MechanismSpec) -> bool:
    by_query = isinstance(mechanism, AdaptiveSpec) and mechanism.select == "queries"
    return by_query or not block.is_whole


def _warnings(release: ReleaseSpec, planned: ReleasePlan) -> list[str]:
    warnings = []
    if isinstance(planned.spending, OneShot) and release.mechanism.releases_rows:
        warnings += _warnings_of_pairs(planned)
    if isinstance(planned.spending, Rounds):
        warnings += _warnings_of_rounds(release, planned.measured, planned.spending)
    if isinstance(planned.spending, AnnealedRounds):
        warnings.append(
            f"there are at most {planned.spending.rounds} rounds; whenever a round improves the model by "
            "less than its noise, the noise is halved and fewer rounds remain; sigma is the noise of the "
            "first round"
        )
    if isinstance(planned.spending, Draws):
        rounds, draws = len(planned.spending.prices), planned.spending.per_round
        later = (
            "request outputs.certify to measure it"
            if release.outputs.certify is None
            else "the certificate will state it"
        )
        warnings.append(
            f"nothing is measured: {draws} queries are drawn in each of {rounds} rounds, so the error of "
            f"the rows cannot be predicted; {later}"
        )
    elif release.mechanism.measure is not None and release.mechanism.releases_rows:
        warnings.append(
            "the workload is answered from the queries in mechanism.measure; sigma is their noise"
        )
    return warnings


def _warnings_of_pairs(planned: ReleasePlan) -> list[str]:
    """Warn about pairs of columns that are asked about together and not measured together."""
    missing = left_out(planned.asked.marginals, planned.measured)
    if not missing:
        return []
    if all(len(block.attributes) == 1 for block in planned.measured):
        return [
            "only single columns are measured, because counts of pairs would be lost in their noise: "
            "relations between columns will not be kept; ask about fewer columns, declare wider bins, or "
            "use a larger budget"
        ]
    named = ", ".join(f"({first}, {second})" for first, second in missing[:NAMED_PAIRS])
    further = f" and {len(missing) - NAMED_PAIRS:,} more" if len(missing) > NAMED_PAIRS else ""
    return [
        f"{len(missing):,} pairs of columns are not measured together, because a fit takes at most "
        f"{MAX_MEASURED:,} counts: {named}{further}; what is released about them follows from other "
        "pairs; declare wider bins, or ask about fewer columns, to measure them"
    ]


def _warnings_of_rounds(release: ReleaseSpec, measured: list[Block], spending: Rounds) -> list[str]:
    """Warn about marginals that rounds do not measure or that have no noise."""
    warnings = []
    known, most = set(spending.public), spending.rounds * spending.per_round
    moved = [block for block in measured if block not in known]
    public = len(measured) - len(moved)
    singly = any(_is_measured_singly(block, release.mechanism) for block in moved)
    if most < len(moved) and not singly:
        warnings.append(
            f"at most {most} of {len(moved)} marginals are measured; the others are answered "
            "from the model, and their error is not predicted by sigma"
        )
    if public:
        warnings.append(
            f"{public} of {len(measured)} marginals are read without noise, because no protected unit can "
            "change them"
        )
    return warnings


def _warnings_of_groups(planned: ReleasePlan, subject: Subject) -> list[str]:
    """Warn if the unit is a person: only that person's rows are protected, not the columns of groups."""
    if subject.protection.unit != "person":
        return []
    asked = {name for block in (*planned.asked, *planned.measured) for name in block.attributes}
    if not asked & subject.schema.columns_of_groups:
        return []
    return [
        "the release covers columns of groups, but only each person's own rows are protected: this is "
        "sound only if no person can change a group's columns"
    ]


def _warnings_of_columns(planned: ReleasePlan) -> list[str]:
    """Warn about declared columns that are not released, because no query mentions them."""
    names = planned.left_out
    if not names:
        return []
    further = f" and {len(names) - NAMED_COLUMNS:,} more" if len(names) > NAMED_COLUMNS else ""
    named = ", ".join(names[:NAMED_COLUMNS]) + further
    noun, verb, them = ("column", "is", "it") if len(names) == 1 else ("columns", "are", "them")
    return [
        f"{noun} {named} {verb} not released, because no query mentions {them}; ask about {them} in the "
        f"workload, or name {them} in outputs.columns"
    ]
