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
    columns: dict[str, float]
    """The noise of each column's own counts, from the best table that contains it."""
    _pairs: dict[Names, float]

    def of_pair(self, pair: Names) -> float | None:
        """The smallest noise of a measured table that contains the pair; None if there is none."""
        return self.noise.get(pair, self._pairs.get(pair))


def knowledge_of(resolved: Resolved, subject: Subject) -> Knowledge:
    """What the planned measurements tell, per expected row."""
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
        found, covered, whole / rows, _of_columns(found, subject.schema.sizes), _of_pairs(found)
    )


def _of_columns(found: Mapping[Names, float], sizes: Mapping[str, int]) -> dict[str, float]:
    best: dict[str, float] = {}
    for names, noise in found.items():
        cells = math.prod(sizes[name] for name in names)
        for name in names:
            summed = noise * math.sqrt(cells / sizes[name])
            best[name] = min(summed, best.get(name, math.inf))
    return best


def _of_pairs(found: Mapping[Names, float]) -> dict[Names, float]:
    """The noise of pairs inside larger measured tables."""
    best: dict[Names, float] = {}
    for names, noise in found.items():
        if len(names) > 2:
            for pair in combinations(names, 2):
                best[pair] = min(noise, best.get(pair, math.inf))
    return best


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
    opened = reader.noise_of((block, spending.opening) for block in spending.opened)
    public = {block.attributes: 0.0 for block in spending.public}
    return {**found, **opened, **public}, min(1.0, count / max(1, candidates))


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
                found[block.attributes] = min(noise, found.get(block.attributes, math.inf))
        return found
