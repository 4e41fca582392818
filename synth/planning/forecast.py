"""The expected accuracy of a release, and warnings for its curator, from public numbers alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scrim.spec.budget import rho_of_units
from scrim.spec.mechanism import AdaptiveSpec, Gaussian
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from scrim.spec.workload import Block
from synth.planning.choice import Resolved
from synth.planning.expected import Expected, ItemExpected, of_gaussian, of_model, together
from synth.planning.forecast_warnings import Warning, warnings_of
from synth.planning.gaussian import answer_variances
from synth.planning.knowledge import knowledge_of
from synth.planning.pace import count_candidates
from synth.planning.plan import ReleasePlan
from synth.planning.reference import MEAN_ABSOLUTE
from synth.planning.rounds import is_measured_singly
from synth.planning.spending import Draws, OneShot, Setting
from synth.planning.subject import Subject


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
    expected: Expected
    """Expected errors of what is delivered."""


@dataclass(frozen=True)
class Forecast:
    """The expected accuracy of a release."""

    items: Sequence[ItemNoise]
    operations: int
    """The largest number of operations on the data that spend budget."""
    expected: Expected
    """Expected errors of what is delivered."""
    warnings: Sequence[Warning]
    """Limits of the release that the curator should know."""


def forecast(resolved: Resolved, subject: Subject) -> Forecast:
    """Forecast the accuracy of a planned release."""
    release, planned = resolved.release, resolved.plan
    split, schema = planned.split, subject.schema
    items: Sequence[ItemNoise]
    if isinstance(release.mechanism, Gaussian):
        variance_of = _variances(release.mechanism, resolved, subject)
        expected = _expect_answers(resolved, subject, variance_of)
        items = _items_of_answers(resolved, subject, variance_of, expected)
    else:
        expected = expect(resolved, subject)
        items = _items_of_model(resolved, subject, expected)
    around = (split.row_count > 0) + (split.screen > 0)
    if planned.binning is not None:
        around += len(planned.binning.blocks)
    if planned.certification is not None:
        around += planned.certification.operations(schema, subject.protection)
    return Forecast(
        items=items,
        operations=_operations(release, planned, schema) + around,
        expected=together(expected),
        warnings=warnings_of(resolved, subject),
    )


def expect(resolved: Resolved, subject: Subject) -> list[ItemExpected]:
    """The expected errors of each item."""
    mechanism = resolved.release.mechanism
    if not isinstance(mechanism, Gaussian):
        return of_model(resolved, subject.schema, knowledge_of(resolved, subject))
    return _expect_answers(resolved, subject, _variances(mechanism, resolved, subject))


def _expect_answers(
    resolved: Resolved, subject: Subject, variance_of: Mapping[Block, float]
) -> list[ItemExpected]:
    """The expected errors of each item of answers with these variances."""
    return [
        of_gaussian(
            [variance_of[block] for block in blocks],
            blocks,
            subject.schema,
            rows=resolved.release.expected_rows,
        )
        for blocks in resolved.plan.asked.items
    ]


def _items_of_model(
    resolved: Resolved, subject: Subject, expected: Sequence[ItemExpected]
) -> list[ItemNoise]:
    """The noise of the measurements, which is the same for every item."""
    release, planned = resolved.release, resolved.plan
    sigma = _sigma(release, planned, subject)
    error = None if sigma is None else sigma * MEAN_ABSOLUTE
    return [
        ItemNoise(item.type, each.queries, sigma, error, each.errors)
        for item, each in zip(release.workload, expected, strict=True)
    ]


def _items_of_answers(
    resolved: Resolved,
    subject: Subject,
    variance_of: Mapping[Block, float],
    expected: Sequence[ItemExpected],
) -> list[ItemNoise]:
    """The standard errors of the answers, which follow from the plan."""
    release, planned = resolved.release, resolved.plan
    items = []
    for item, blocks, each in zip(release.workload, planned.asked.items, expected, strict=True):
        sizes = [block.size(subject.schema) for block in blocks]
        queries = sum(sizes)
        square = sum(size * variance_of[b] for size, b in zip(sizes, blocks, strict=True))
        error = each.errors.mean_absolute_error * release.expected_rows
        items.append(ItemNoise(item.type, queries, math.sqrt(square / queries), error, each.errors))
    return items


def _variances(mechanism: Gaussian, resolved: Resolved, subject: Subject) -> dict[Block, float]:
    """The variance of the answers of each block, in counts."""
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
    return answer_variances(mechanism, planned.measured, setting, planned.spending)


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
            singly = is_measured_singly(block, release.mechanism)
        moved = block.sensitivity(subject.schema, subject.protection)
        found.add((moved.linf**2 if singly else moved.l2_squared, units))
    return math.sqrt(max(squared / (2 * rho_of_units(units)) for squared, units in found))
