"""Standard errors of a model's answers, from the noise of its measurements and how well it fits them.

Everything here follows from released numbers, so it costs no budget. The forms describe the errors of
models on public tables, and the constants were chosen there (docs/adr/0022-error-bars-by-formula.md).
Let x be the answer in rows, and m the misfit: the root mean square residual of the measurements in units
of their noise, at least one.

A measured answer is a measured count or a sum of measured cells. Let s be m times the standard deviation
of its measurements, all combined. A fit follows the noise of a large cell, and hardly that of a cell that
it expects to be empty. The standard error is FOLLOWED s sqrt(y / (y + SHRUNK s)), with y = x + s EMPTY.

Any other answer has errors of the model as well. Let t be m times the root mean square noise of all
measurements. The variance is HIDDEN t y, for structure below the noise, with y = x + t EMPTY_UNMEASURED
for cells of tables, and x + t EMPTY_PREDICATE for other queries, which a model leaves empty by mistake more
often; plus SCATTERED x, because rows scatter around every smooth distribution; plus (BENT x)^2. If two of the
columns were neither measured together nor considered for it, the model assumes a relation between them
that nothing confirms, and ASSUMED takes the place of BENT. A mechanism that considers a pair and does not
measure it has found that the model answers it well.

A game draws queries and measures none. For it, t is DRAWN n / T^(1/3), n the number of rows and T that of
the rounds: no theory, but what covered the errors on one table. A model of equal rows cannot answer
more finely than one of them; GRAIN of that many rows of the table is added in quadrature.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from synth.measurements import Measurement, merge_repeated
from synth.models.base import Model
from synth.models.fitted import fitted_counts
from synth.models.rows import Rows
from synth.models.support import Support
from synth.queries import Marginal, QueryBlock, QuerySet, Single

FOLLOWED, SHRUNK, EMPTY = 1.15, 1.2, 0.03
HIDDEN, EMPTY_UNMEASURED, EMPTY_PREDICATE = 0.4, 0.02, 0.1
SCATTERED, BENT, ASSUMED = 1.2, 0.05, 0.7
DRAWN = 0.16
"""Chosen on public tables (docs/adr/0022-error-bars-by-formula.md), as are those above."""
CERTAINLY_POSITIVE = 5.0
"""A measured count of this many standard deviations is certainly above zero."""
GRAIN, LEAST_DEVIATION = 0.5, 0.5
"""Standard deviation of an answer of equal rows, in rows of the model, and of any answer, in rows."""
PUBLIC_SHARE = 1 / 3
"""Noise assumed for counts without noise, as a share of the least noisy measurement; fits treat them so."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredBlock:
    """A block of queries that was measured, with all its measurements combined."""

    name: str
    attributes: tuple[str, ...]
    queries: int
    sigma: float
    """Noise of each count; 0 if the counts are public."""
    covers: Literal["table", "block", "part"]
    """Whether these are all cells of a table of counts, all queries of another block, or single queries."""

    @classmethod
    def of(cls, measurement: Measurement) -> Self:
        """Describe one measurement."""
        query = measurement.query
        covers: Literal["table", "block", "part"] = (
            "table" if isinstance(query, Marginal) else "block"
        )
        if isinstance(query, Single):
            covers = "part"
        return cls(query.name, measurement.block.attributes, query.size, measurement.sigma, covers)


@dataclass(frozen=True)
class ErrorBars:
    """What standard errors of answers follow from. It contains no private information."""

    rows_sigma: float
    """Standard deviation of the noise of the number of rows."""
    measured: tuple[MeasuredBlock, ...]
    pairs: tuple[tuple[str, ...], ...]
    """Pairs of columns, in alphabetical order, that were measured together or considered for it."""
    parts: tuple[str, ...]
    """Blocks of which single queries were measured or considered."""
    misfit: float = 1.0
    """Root mean square residual of the measurements in units of their noise; at least one."""
    drawn_rounds: int = 0
    """Rounds of a game, which draws queries and measures none; 0 for other mechanisms."""
    grain: float = 0.0
    """Rows of the table for each row of the model; 0 if the model is no set of equal rows."""

    @classmethod
    def of(
        cls,
        model: Model,
        measurements: Sequence[Measurement],
        *,
        rows: int,
        rows_sigma: float,
        candidates: QuerySet,
        drawn_rounds: int = 0,
    ) -> Self:
        """Compare a model with its measurements; `candidates` are what could be measured."""
        merged = merge_repeated(measurements)
        considered = {*candidates.blocks, *(measurement.block for measurement in merged)}
        return cls(
            rows_sigma,
            tuple(MeasuredBlock.of(measurement) for measurement in merged),
            tuple(sorted({pair for b in considered if b.is_whole for pair in _pairs(b)})),
            tuple(sorted({b.name for b in considered if not b.is_whole})),
            _misfit(merged, fitted_counts(model, rows, merged)) if merged else 1.0,
            drawn_rounds,
            _grain(model, rows, is_game=drawn_rounds > 0),
        )

    def of_counts(self, queries: QuerySet, counts: Floats, *, rows: int) -> Floats:
        """Standard errors of counts of a model, without the noise of the number of rows."""
        parts = queries.split(np.clip(counts, 0, None))
        found = [
            self._of_block(block, expected, rows)
            for block, expected in zip(queries.blocks, parts, strict=True)
        ]
        return np.hypot(np.concatenate(found), max(LEAST_DEVIATION, GRAIN * self.grain))

    def kind_of(self, block: QueryBlock) -> Literal["measured", "model", "assumed"]:
        """What a block's standard errors follow from."""
        if np.any(self._precision(block, np.zeros(1), rows=1)):
            return "measured"
        return "model" if self._is_considered(block) else "assumed"

    def to_values(self) -> dict[str, Any]:
        """Plain values, which determine everything."""
        return asdict(self)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild from the output of `to_values`."""
        blocks = (
            MeasuredBlock(**{**block, "attributes": tuple(block["attributes"])})
            for block in values["measured"]
        )
        changed = {
            "measured": tuple(blocks),
            "pairs": tuple(tuple(pair) for pair in values["pairs"]),
            "parts": tuple(values["parts"]),
        }
        return cls(**{**values, **changed})

    def _of_block(self, block: QueryBlock, expected: Floats, rows: int) -> Floats:
        precision = self._precision(block, expected, rows=rows)
        if not np.any(precision):
            return self._of_model(block, expected, rows)
        noise = self.misfit / np.sqrt(precision)
        counts = expected + EMPTY * noise
        return np.asarray(FOLLOWED * noise * np.sqrt(counts / (counts + SHRUNK * noise)))

    def _of_model(self, block: QueryBlock, expected: Floats, rows: int) -> Floats:
        """Standard errors of answers that no measurement determines."""
        noise = self.misfit * self._typical
        if self.drawn_rounds:
            noise = DRAWN * rows / self.drawn_rounds ** (1 / 3)
        bent = BENT if self._is_considered(block) else ASSUMED
        empty = EMPTY_UNMEASURED if block.is_whole else EMPTY_PREDICATE
        hidden = HIDDEN * noise * (expected + empty * noise)
        return np.asarray(np.sqrt(hidden + SCATTERED * expected + (bent * expected) ** 2))

    def _precision(self, block: QueryBlock, expected: Floats, *, rows: int) -> Floats:
        """The precision of all measurements of a block's queries; zero if they were not measured.

        A cell of a smaller table is the sum of cells. How many cells of the table another query sums is
        unknown; it follows from its share of the rows, and all cells together are known without noise.
        """
        total = np.zeros(len(expected))
        for measured in self._named.get(block.name, []):
            total += self._noise_of(measured) ** -2
        share = np.clip(expected / rows, 0, 1)
        for table in self._tables_with(block):
            if isinstance(block, Marginal):
                summed: Floats | float = table.queries / block.size
            else:
                summed = np.maximum(1, table.queries * share * (1 - share))
            total += self._noise_of(table) ** -2 / summed
        return total

    def _tables_with(self, block: QueryBlock) -> list[MeasuredBlock]:
        """The measured tables over more columns than the block's, or over the same if it is no table."""
        wanted = set(block.attributes)
        if not wanted:
            return []
        fewest = min((self._tables.get(name, []) for name in wanted), key=len)
        return [
            table
            for table in fewest
            if wanted.issubset(table.attributes) and table.name != block.name
        ]

    def _is_considered(self, block: QueryBlock) -> bool:
        """Whether the mechanism could measure the block's queries, or all pairs of its columns.

        Queries about parts of tables, such as ranges, say too little about any pair.
        """
        return block.name in self.parts or self._known_pairs.issuperset(_pairs(block))

    def _noise_of(self, measured: MeasuredBlock) -> float:
        return measured.sigma or PUBLIC_SHARE * min(self._noisy, default=LEAST_DEVIATION)

    @cached_property
    def _noisy(self) -> list[float]:
        return [measured.sigma for measured in self.measured if measured.sigma > 0]

    @cached_property
    def _typical(self) -> float:
        """Root mean square noise of the measurements."""
        return math.sqrt(sum(s**2 for s in self._noisy) / len(self._noisy)) if self._noisy else 0.0

    @cached_property
    def _named(self) -> Mapping[str, list[MeasuredBlock]]:
        found: dict[str, list[MeasuredBlock]] = {}
        for measured in self.measured:
            if measured.covers != "part":
                found.setdefault(measured.name, []).append(measured)
        return found

    @cached_property
    def _tables(self) -> Mapping[str, list[MeasuredBlock]]:
        """The measured tables that contain each column."""
        found: dict[str, list[MeasuredBlock]] = {}
        for measured in self.measured:
            if measured.covers == "table":
                for name in measured.attributes:
                    found.setdefault(name, []).append(measured)
        return found

    @cached_property
    def _known_pairs(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self.pairs)


def _pairs(block: QueryBlock) -> set[tuple[str, ...]]:
    """The pairs of columns of a block."""
    return set(combinations(sorted(block.attributes), 2))


def _grain(model: Model, rows: int, *, is_game: bool) -> float:
    """Rows of the table for each row of a model of equal rows."""
    if isinstance(model, Rows):
        return rows / model.size
    return rows / len(model.weights) if is_game and isinstance(model, Support) else 0.0


def _misfit(measurements: Sequence[Measurement], fitted: Sequence[Floats]) -> float:
    """The root mean square residual, in units of noise, of the counts that exceed their noise.

    Other cells say little, because their noise is hardly fitted, unless they certainly hold rows.
    """
    squares, number = 0.0, 0
    for measurement, counts in zip(measurements, fitted, strict=True):
        if measurement.sigma > 0:
            certain = measurement.values > CERTAINLY_POSITIVE * measurement.sigma
            large = (counts > measurement.sigma) | certain
            residuals = (measurement.values - counts)[large] / measurement.sigma
            squares += float(np.sum(residuals**2))
            number += int(large.sum())
    return max(1.0, math.sqrt(squares / number)) if number else 1.0
