"""Certify released rows: pay for their errors, and state bounds (docs/privacy.md, section 5)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrim.spec.descriptions import describe_item
from scrim.spec.quality import ColumnQuality, ItemQuality, Quality, quality_in_words
from scrim.spec.release import ReleaseSpec
from scrim.spec.workload import Block
from synth.door import Certified, CertifiedErrors, Door
from synth.models.released import ReleasedModel
from synth.planning.certification import Certification
from synth.queries import QueryBlock, QuerySet, compile_blocks
from synth.table import Chunk, Table


@dataclass(frozen=True)
class _Released:
    """The released rows, as counts of every block that is certified."""

    door: Door
    compiled: Mapping[Block, QueryBlock]
    counts: Mapping[Block, NDArray[np.int64]]
    released_rows: int
    estimated_rows: int

    def errors(
        self, certified: Certified, blocks: Sequence[Block], *, budget: int
    ) -> CertifiedErrors:
        """Pay for errors over all queries of these blocks."""
        return self.door.certify(
            QuerySet(self.compiled[block] for block in blocks),
            np.concatenate([self.counts[block] for block in blocks]),
            released_rows=self.released_rows,
            rows=self.estimated_rows,
            budget=budget,
            certified=certified,
        )


@dataclass(frozen=True)
class _Stated:
    """Turns noisy errors into fractions."""

    whole: int
    """Released rows times estimated rows: an error of this size is one."""
    margin: float
    """Standard deviations between an estimate and its bound."""
    most: float
    """Larger fractions than this cannot occur."""

    def estimate(self, value: float, divisor: int) -> float:
        """The error without a margin."""
        return min(self.most, max(0, value) / (divisor * self.whole))

    def bound(self, value: float, sigma: float, divisor: int = 1) -> float:
        """The true error is at most this, with the confidence."""
        return min(self.most, max(0.0, value + self.margin * sigma) / (divisor * self.whole))


def certify(
    release: ReleaseSpec, door: Door, plan: Certification, model: ReleasedModel, rows: Chunk
) -> Quality:
    """Measure the errors of the released rows, and bound them with the requested confidence."""
    assert release.synthetic_rows is not None and release.outputs.certify is not None
    schema, confidence = model.schema, release.outputs.certify.confidence
    released = _count(door, plan, model, rows, release.synthetic_rows)
    stated = _Stated(
        whole=release.synthetic_rows * model.estimated_rows,
        margin=math.sqrt(2 * math.log(1 / (1 - confidence))),
        # A group may have several individuals, so errors per group may exceed one.
        most=math.inf if schema.is_linked else 1.0,
    )
    largest = released.errors("largest error", plan.asked, budget=plan.largest)
    max_error = stated.bound(largest.values[0], largest.sigma)
    totals = [
        released.errors("total error", item.blocks, budget=plan.per_item) for item in plan.items
    ]
    mean, estimate = _mean(plan, totals, stated)
    columns = _columns(released, plan, stated)
    certified = {column.name for column in columns}
    return Quality(
        summary=quality_in_words(
            confidence=confidence,
            max_error=max_error,
            mean=mean,
            estimate=estimate,
            share_of=schema.row_noun,
        ),
        confidence=confidence,
        max_error=max_error,
        mean_total_variation=mean,
        estimate=estimate,
        items=_items(release, plan, totals, stated),
        columns=columns,
        left_out_columns=[each.name for each in schema.attributes if each.name not in certified],
        share_of=schema.row_noun,
    )


def _count(
    door: Door, plan: Certification, model: ReleasedModel, rows: Chunk, released_rows: int
) -> _Released:
    """Count the released rows once for everything that is certified."""
    blocks = list(dict.fromkeys([*plan.asked, *plan.columns]))
    queries = compile_blocks(blocks, model.schema)
    counts = queries.split(queries.count(Table(model.schema, [rows])))
    return _Released(
        door=door,
        compiled=dict(zip(blocks, queries.blocks, strict=True)),
        counts=dict(zip(blocks, counts, strict=True)),
        released_rows=released_rows,
        estimated_rows=model.estimated_rows,
    )


def _mean(
    plan: Certification, totals: Sequence[CertifiedErrors], stated: _Stated
) -> tuple[float, float]:
    """The bound and the estimate of the mean over the tables of all items; their noise is independent."""
    weights = [item.tables / item.divisor for item in plan.items]
    total = sum(w * found.values[0] for w, found in zip(weights, totals, strict=True))
    sigma = math.hypot(*(w * found.sigma for w, found in zip(weights, totals, strict=True)))
    tables = sum(item.tables for item in plan.items)
    return stated.bound(total, sigma, tables), stated.estimate(total, tables)


def _items(
    release: ReleaseSpec,
    plan: Certification,
    totals: Sequence[CertifiedErrors],
    stated: _Stated,
) -> list[ItemQuality]:
    """The mean total variation of each item."""
    return [
        ItemQuality(
            item=describe_item(asked.model_dump(mode="json", exclude_none=True)),
            tables=item.tables,
            mean_total_variation=stated.bound(found.values[0], found.sigma, item.divisor),
            estimate=stated.estimate(found.values[0], item.divisor),
        )
        for asked, item, found in zip(release.workload, plan.items, totals, strict=True)
    ]


def _columns(released: _Released, plan: Certification, stated: _Stated) -> list[ColumnQuality]:
    """The total variation of every single column, from one operation."""
    if not plan.columns:
        return []
    found = released.errors("total errors", plan.columns, budget=plan.for_columns)
    return [
        ColumnQuality(
            name=block.attributes[0],
            total_variation=stated.bound(value, found.sigma, divisor=2),
            estimate=stated.estimate(value, divisor=2),
        )
        for block, value in zip(plan.columns, found.values, strict=True)
    ]
