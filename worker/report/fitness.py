"""What the released rows can be used for: relations, categories and repeated rows.

Everything follows from the released rows, the public names of what was measured, and the standard errors
of the model's answers (docs/adr/0022-error-bars-by-formula.md). The expected error of a table is its total
variation if each cell has a normal error with its standard error; it is an estimate, not a bound.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.basis import Basis
from synth.domain import Domain
from synth.models.error_bars import ErrorBars
from synth.models.released import ReleasedModel
from synth.queries import Marginal, QuerySet
from synth.queries.marginal import code_labels
from synth.run import FinishedRelease
from synth.table import Chunk, Table
from worker.report import svg
from worker.report.columns import MAX_CHARTS, PAIR_ROWS

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""The mean of |x| for standard normal x."""
BELOW = 2.0
"""A count of fewer standard errors than this may be only noise."""
MAX_NAMES = 12
"""The largest number of categories of a column that are listed by name."""

DARKEST = 0.3
"""The expected error from which a map is darkest."""
SIZES: dict[Basis, Literal["full", "small", "none"]] = {
    "measured": "full",
    "model": "small",
    "independent": "none",
}
"""The squares of a map."""

Codes = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Relation:
    """The table of two columns."""

    first: int
    second: int
    basis: Basis
    error: float
    """The expected total variation: the share of the rows that is in the wrong cell."""


@dataclass(frozen=True)
class NoisyCategories:
    """The categories of a column whose counts are below their noise."""

    column: str
    number: int
    of: int
    names: list[str]
    """The first of them."""


@dataclass(frozen=True)
class Fitness:
    """What the rows can be used for."""

    rows: int
    distinct: int
    names: list[str]
    """The columns of the matrix."""
    relations: list[Relation]
    """Empty if rows are linked, or if the model states no errors."""
    categories: list[NoisyCategories] | None
    """Columns that have categories below their noise; None if the model states no errors."""

    @property
    def bases(self) -> Counter[Basis]:
        """How many relations have each basis."""
        return Counter(relation.basis for relation in self.relations)

    def worst_measured(self, number: int) -> list[Relation]:
        """The measured relations with the largest expected errors."""
        measured = [relation for relation in self.relations if relation.basis == "measured"]
        return sorted(measured, key=lambda relation: -relation.error)[:number]


def fitness(release: FinishedRelease) -> Fitness | None:
    """Judge the released rows; None if there are none."""
    rows, model = release.rows, release.model
    if rows is None:
        return None
    names = [name for name in model.schema.names if name in model.schema.sizes][:MAX_CHARTS]
    number = len(next(iter(rows.values())))
    bars = model.error_bars
    is_judged = bars is not None and not model.schema.is_linked
    codes = _some_codes(model.schema, rows, names) if is_judged else {}
    return Fitness(
        rows=number,
        distinct=distinct_rows(rows, model.schema),
        names=names,
        relations=[] if bars is None else list(_relations(model, bars, codes)),
        categories=list(_categories(model, bars, codes)) if bars is not None and codes else None,
    )


def relation_map(found: Fitness) -> Markup:
    """The expected error of every pair, as a map."""
    pairs = [
        svg.Pair(
            relation.first,
            relation.second,
            shade_of(relation.error),
            SIZES[relation.basis],
            _percent(relation.error),
        )
        for relation in found.relations
    ]
    title = (
        f"Expected error of all pairs of {len(found.names)} columns; the largest are in the table"
    )
    return svg.pair_map(found.names, pairs, title=title)


def shade_of(error: float) -> int:
    """The darkest shade stands for an expected error of DARKEST or more."""
    return min(svg.SHADES, math.ceil(error / DARKEST * svg.SHADES))


def _percent(error: float) -> str:
    return f"{100 * error:.1f}" if error < 0.0995 else f"{100 * error:.0f}"


def distinct_rows(rows: Chunk, schema: Schema) -> int:
    """The number of different rows, by a hash of 64 bits; numbers of groups do not count."""
    names = [column.name for column in schema.attributes]
    hashed = np.zeros(len(rows[names[0]]), np.uint64)
    for name in names:
        values = rows[name]
        bits = values.view(np.uint64) if values.dtype == np.float64 else values.astype(np.uint64)
        hashed = _mixed(hashed ^ bits)
    return len(np.unique(hashed))


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of SplitMix64 (Steele, Lea, Flood 2014): different values stay different."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _some_codes(schema: Schema, rows: Chunk, names: Sequence[str]) -> Codes:
    """The codes of at most PAIR_ROWS rows, evenly spaced."""
    step = -(-len(next(iter(rows.values()))) // PAIR_ROWS)
    some = {name: values[::step] for name, values in rows.items()}
    (codes,) = Table(schema, [some]).codes(names)
    return codes


def _relations(model: ReleasedModel, bars: ErrorBars, codes: Codes) -> Iterator[Relation]:
    """Every pair of the columns whose codes are given."""
    domain = Domain.of(model.schema)
    for (i, first), (j, second) in combinations(enumerate(codes), 2):
        block = Marginal.of((first, second), domain)
        cells = np.ravel_multi_index([codes[name] for name in block.attributes], block.sizes)
        counts = _scaled(cells, block.size, model.estimated_rows)
        basis: Basis = "model"
        if model.measured is not None:
            basis = model.measured.bases(block, model.schema)[0]
        yield Relation(i, j, basis, _variation(model, bars, block, counts))


def _variation(
    model: ReleasedModel, bars: ErrorBars, block: Marginal, counts: NDArray[np.float64]
) -> float:
    errors = bars.of_counts(QuerySet([block]), counts, rows=model.estimated_rows)
    return min(1.0, MEAN_ABSOLUTE * float(errors.sum()) / 2 / model.estimated_rows)


def _categories(model: ReleasedModel, bars: ErrorBars, codes: Codes) -> Iterator[NoisyCategories]:
    """The columns with categories whose counts are below their noise."""
    domain = Domain.of(model.schema)
    for name, values in codes.items():
        block = Marginal.of((name,), domain)
        counts = _scaled(values, block.size, model.estimated_rows)
        errors = bars.of_counts(QuerySet([block]), counts, rows=model.estimated_rows)
        below = np.flatnonzero(counts < BELOW * errors)
        if len(below):
            labels = code_labels(model.schema, name)
            named = [labels[code] for code in below[:MAX_NAMES]]
            yield NoisyCategories(name, len(below), block.size, named)


def _scaled(cells: NDArray[Any], size: int, rows: int) -> NDArray[np.float64]:
    """How many rows of the private table the released rows stand for in each cell."""
    counted = np.bincount(cells, minlength=size) * (rows / len(cells))
    return np.asarray(counted, dtype=np.float64)
