"""Coverage of the intervals of one release, and their width. This is allowed for public data only."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.workload import WorkloadItem
from synth.models.released import ReleasedModel
from synth.queries import QuerySet, compile_workload
from synth.run import run
from synth.table import Table

Floats = NDArray[np.float64]

ADD_REMOVE = Protection()
NOMINAL = 1.96
"""Half the width of a nominal 95% interval, in standard errors."""
LARGE = 100
"""Counts of at least this many rows are also reported apart: most cells of a large table are empty."""


@dataclass(frozen=True)
class Asked:
    """A private table, its workload, and who is protected."""

    table: Table
    rows: int
    """The true number of rows; of groups, if rows are linked."""
    workload: Sequence[WorkloadItem]
    protection: Protection = ADD_REMOVE
    public: Table | None = None

    def count(self) -> Floats:
        """The true counts."""
        return compile_workload(self.workload, self.table.schema).count(self.table).astype(float)


@dataclass(frozen=True)
class Coverage:
    """The intervals of the answers of one kind."""

    kind: str
    """What their standard errors follow from (`ErrorBars.kind_of`)."""
    queries: int
    covered: float
    """Share of the intervals that contain the true count."""
    covered_large: float | None
    """The same of answers of at least `LARGE` rows; None if there are none."""
    half_width: float
    """Half the median width, in rows."""
    relative_width: float
    """The median width, as a multiple of the narrowest constant width that covers as many."""


@dataclass(frozen=True)
class Covered:
    """One release."""

    coverages: list[Coverage]
    processor_seconds: float
    """Of the whole job."""
    added_seconds: float
    """Of answering with standard errors, beyond answering without."""


def measure(asked: Asked, true: Floats, mechanism: str, *, epsilon: float) -> Covered:
    """Carry out one release and compare its intervals with the truth."""
    spec = ReleaseSpec.model_validate(
        {
            "workload": [item.model_dump() for item in asked.workload],
            "mechanism": {"name": mechanism},
            "budget": {"epsilon": epsilon},
            "outputs": {"rows": 1, "answers": False},
            "expected_rows": asked.rows,
        }
    )
    start = time.process_time()
    done = run(
        spec,
        asked.table,
        protection=asked.protection,
        delta=1 / asked.rows**2,
        public=asked.public,
    )
    took = time.process_time() - start
    coverages, added = coverages_of(done.model, asked, true)
    return Covered(coverages, took, added)


def coverages_of(model: ReleasedModel, asked: Asked, true: Floats) -> tuple[list[Coverage], float]:
    """The coverage by kind, and the processor seconds of the standard errors."""
    assert model.error_bars is not None
    queries = compile_workload(asked.workload, model.schema)
    counts = model.model.answer(queries).values * model.estimated_rows
    start = time.process_time()
    errors = model.error_bars.of_counts(queries, counts, rows=model.estimated_rows)
    took = time.process_time() - start
    errors = np.hypot(errors, counts / model.estimated_rows * model.error_bars.rows_sigma)
    kind = _kind_of_each(model, queries)
    found = [
        coverage(name, counts[kind == name], true[kind == name], errors[kind == name])
        for name in sorted(set(kind.tolist()))
    ]
    return found, took


def coverage(kind: str, counts: Floats, true: Floats, errors: Floats) -> Coverage:
    """Compare intervals with the truth."""
    off = np.abs(counts - true)
    inside = off <= NOMINAL * errors
    large = counts >= LARGE
    half = NOMINAL * float(np.median(errors))
    constant = float(np.sort(off)[max(0, int(inside.sum()) - 1)])
    return Coverage(
        kind,
        queries=len(counts),
        covered=float(inside.mean()),
        covered_large=float(inside[large].mean()) if large.any() else None,
        half_width=half,
        relative_width=half / max(constant, 1e-9),
    )


def _kind_of_each(model: ReleasedModel, queries: QuerySet) -> NDArray[np.str_]:
    assert model.error_bars is not None
    each = [model.error_bars.kind_of(block) for block in queries.blocks]
    return np.repeat(each, np.diff(queries.offsets))
