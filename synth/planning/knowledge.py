"""What a plan learns about tables: which it measures, and the noise of their cells as shares of the rows."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from scrim.spec.budget import rho_of_units
from scrim.spec.mechanism import AdaptiveSpec
from scrim.spec.workload import Block, MarginalBlock, PartBlock
from synth.planning.choice import Resolved
from synth.planning.pace import count_candidates, worth_measuring
from synth.planning.plan import ReleasePlan
from synth.planning.spending import AnnealedRounds, Draws, OneShot, Rounds, Setting
from synth.planning.subject import Subject

Names = tuple[str, ...]


@dataclass(frozen=True)
class Knowledge:
    """The noise of the measured tables, by their columns."""

    noise: dict[Names, float]
    """Standard deviation of the noise on each cell, as a share of the rows."""
    covered: float
    """The share of the tables of several columns that are measured."""
    whole: float
    """The noise of one count that gets the whole budget, as a share of the rows."""
    precisions: dict[Names, float]
    """The precision of the part over each column and each pair, from all tables that contain it, in the
    scale of synth/planning/precision.py."""

    def of_column(self, name: str, size: int) -> float | None:
        """The noise of a column's own counts; None if no measurement covers it."""
        precision = self.precisions.get((name,), 0.0)
        return math.sqrt((1 - 1 / size) / precision) if precision else None

    def of_relations(self, names: Names, sizes: Mapping[str, int]) -> tuple[float, float]:
        """The noise that relations between these columns add to a cell, and the share of unmeasured pairs."""
        whole, pairs = math.prod(sizes[name] for name in names), list(combinations(names, 2))
        summed, missing = 0.0, 0
        for pair in pairs:
            inside = sizes[pair[0]] * sizes[pair[1]]
            precision = self.precisions.get(pair, 0.0)
            if precision:
                summed += _degrees(pair, sizes) * inside / (whole**2 * precision)
            else:
                missing += 1
        below = sum(_degrees(part, sizes) for size in (1, 2) for part in combinations(names, size))
        rest = max(0.0, 1 - (1 + below) / whole) if len(names) > 2 else 0.0
        direct = self.noise.get(names, 0.0)
        return math.sqrt(summed + rest * direct**2 / self.covered), missing / len(pairs)


def _degrees(part: Names, sizes: Mapping[str, int]) -> int:
    """The degrees of freedom of a part of a table."""
    return math.prod(sizes[name] - 1 for name in part)


def knowledge_of(resolved: Resolved, subject: Subject) -> Knowledge:
    """What the planned measurements determine, per expected row."""
    planned, rows = resolved.plan, resolved.release.expected_rows
    reader = _Reader(subject, rows)
    spending, whole = planned.spending, 1 / math.sqrt(2 * rho_of_units(planned.split.mechanism))
    covered = 1.0
    if isinstance(spending, OneShot):
        found = reader.noise_of(zip(planned.measured, spending.measure, strict=True))
    elif isinstance(spending, Draws):
        share = max(1, planned.split.mechanism // max(1, len(planned.asked)))
        found = reader.noise_of((block, share) for block in planned.asked)
    else:
        found, covered = _of_rounds(resolved, planned, spending, reader)
    return Knowledge(
        found, covered, whole / rows, _precisions(found, covered, subject.schema.sizes)
    )


def _precisions(
    found: Mapping[Names, float], covered: float, sizes: Mapping[str, int]
) -> dict[Names, float]:
    """The summed precisions of columns and pairs; tables that rounds may measure count in part."""
    summed: dict[Names, float] = {}
    for names, noise in found.items():
        whole = math.prod(sizes[name] for name in names)
        share = 1.0 if len(names) == 1 else covered
        each = share / (whole * noise**2) if noise else math.inf
        for size in (1, 2):
            for part in combinations(names, size):
                inside = math.prod(sizes[name] for name in part)
                summed[part] = summed.get(part, 0.0) + inside * each
    return summed


def _of_rounds(
    resolved: Resolved, planned: ReleasePlan, spending: Rounds, reader: "_Reader"
) -> tuple[dict[Names, float], float]:
    """The noise of every candidate if it is measured, and the share that will be."""
    mechanism, schema = resolved.release.mechanism, reader.subject.schema
    assert isinstance(mechanism, AdaptiveSpec)
    candidates = count_candidates(mechanism, planned.measured, schema)
    count, units = spending.rounds * spending.per_round, spending.measure
    if isinstance(spending, AnnealedRounds):
        # The first rounds are cheap, and the noise is halved until the model stops to improve.
        setting = Setting(
            schema,
            reader.subject.protection,
            planned.split.mechanism,
            resolved.release.expected_rows,
            planned.asked,
        )
        count = max(1, min(count, candidates, worth_measuring(candidates, setting)))
        units = spending.reserved // (2 * count)
    found = reader.noise_of((block, max(1, units)) for block in planned.measured)
    covered = min(1.0, count / max(1, candidates))
    opened = reader.noise_of((block, spending.opening) for block in spending.opened)
    for names, noise in opened.items():
        again = covered / found[names] ** 2 if names in found else 0.0
        found[names] = 1 / math.sqrt(1 / noise**2 + again) if noise else 0.0
    return {**found, **{block.attributes: 0.0 for block in spending.public}}, covered


@dataclass(frozen=True)
class _Reader:
    subject: Subject
    rows: int

    def noise_of(self, priced: Iterable[tuple[Block, int]]) -> dict[Names, float]:
        """The noise of whole tables with these prices; others are left out."""
        found: dict[Names, float] = {}
        for block, units in priced:
            if isinstance(block, MarginalBlock | PartBlock) and units > 0:
                moved = block.sensitivity(self.subject.schema, self.subject.protection)
                noise = math.sqrt(moved.l2_squared / (2 * rho_of_units(units))) / self.rows
                if isinstance(block, PartBlock):  # its values are as many times as large as counts
                    noise /= block.size(self.subject.schema)
                found[block.attributes] = min(noise, found.get(block.attributes, math.inf))
        return found
