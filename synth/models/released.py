"""A released model: it answers further queries and draws more rows at no further cost."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload import WorkloadItem
from synth.basis import Basis, MeasuredQueries
from synth.models.base import Answers, Model
from synth.models.blend import Blend
from synth.models.error_bars import ErrorBars
from synth.models.graphical import GraphicalModel
from synth.models.group_types import GroupTypes
from synth.models.histogram import Histogram
from synth.models.households import Households
from synth.models.noisy_marginals import NoisyMarginals
from synth.models.product import ProductMixture
from synth.models.rows import Rows
from synth.models.support import Support
from synth.queries import QueryBlock, QuerySet, compile_workload
from synth.rules.cells import CellRules
from synth.rules.sampling import sample_rows
from synth.table import Chunk

MODEL_FORMAT = "scrim.model/1"
KINDS: dict[str, type[Model]] = {
    model.kind: model
    for model in (
        Blend,
        GraphicalModel,
        GroupTypes,
        Histogram,
        Households,
        NoisyMarginals,
        ProductMixture,
        Rows,
        Support,
    )
}
"""Every model that can be saved, by the name it is saved under."""

ANSWER_COLUMNS = (
    "item",
    "query",
    "value",
    "count",
    "standard_error",
    "count_standard_error",
    "basis",
)
"""The columns of a table of answers, in the order in which they are written."""


@dataclass(frozen=True)
class AnswerTable:
    """Answers to a workload, one row per query."""

    items: list[str]
    queries: list[str]
    fractions: NDArray[np.float64]
    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64] | None
    """Standard errors of the fractions, if known."""
    count_standard_errors: NDArray[np.float64] | None
    """Standard errors of the counts, if known."""
    bases: list[Basis]
    """What each answer is based on (synth/basis.py)."""

    def lines(self, span: slice = slice(None)) -> Iterator[tuple[Any, ...]]:
        """The values of `ANSWER_COLUMNS` for each query; None for an unknown standard error."""
        items = self.items[span]
        unknown = [None] * len(items)
        return zip(
            items,
            self.queries[span],
            self.fractions[span].tolist(),
            self.counts[span].tolist(),
            unknown if self.standard_errors is None else self.standard_errors[span].tolist(),
            unknown
            if self.count_standard_errors is None
            else self.count_standard_errors[span].tolist(),
            self.bases[span],
            strict=True,
        )


@dataclass(frozen=True)
class ReleasedModel:
    """A model with the schema that decodes it. It contains no private information."""

    schema: Schema
    estimated_rows: int
    """The number of rows (of groups, where rows are linked): public, or measured with noise."""
    model: Model
    measured: MeasuredQueries | None = None
    """What was measured; None if that is unknown, because an earlier version stored the model."""
    error_bars: ErrorBars | None = None
    """What standard errors follow from; None if the model states its own, and in files without them."""

    @property
    def rows_sigma(self) -> float:
        """Standard deviation of the noise of the number of rows; 0 if that is public or unknown."""
        if isinstance(self.model, NoisyMarginals):
            return self.model.rows_sigma
        return 0.0 if self.error_bars is None else self.error_bars.rows_sigma

    def answer(self, workload: Sequence[WorkloadItem]) -> AnswerTable:
        """Answer any workload that the model covers."""
        return self.answer_queries(compile_workload(workload, self.schema))

    def answer_queries(self, queries: QuerySet) -> AnswerTable:
        """Answer compiled queries that the model covers."""
        wholes = self._wholes(queries)
        answers = self._with_errors(queries, self.model.answer(queries), wholes)
        answers = self._with_zeros(queries, answers)
        return AnswerTable(
            items=[block.name for block in queries.blocks for _ in range(block.size)],
            queries=[label for block in queries.blocks for label in block.labels(self.schema)],
            fractions=answers.values / wholes,
            counts=answers.values * self.estimated_rows,
            standard_errors=answers.standard_errors,
            count_standard_errors=answers.count_standard_errors,
            bases=[basis for block in queries.blocks for basis in self._bases(block)],
        )

    def _bases(self, block: QueryBlock) -> Sequence[Basis]:
        if self.measured is None:
            return ["model"] * block.size
        return self.measured.bases(block, self.schema)

    def _with_errors(
        self, queries: QuerySet, answers: Answers, wholes: NDArray[np.float64]
    ) -> Answers:
        """The answers with standard errors: the model's own, or those that its measurements imply.

        A model's fractions sum to one for any number of rows; its counts also have the noise of that number.
        """
        if answers.standard_errors is not None or self.error_bars is None:
            return answers
        rows = self.estimated_rows
        of_counts = self.error_bars.of_counts(queries, answers.values * rows, rows=rows)
        of_rows = answers.values * self.error_bars.rows_sigma
        return Answers(answers.values, of_counts / (rows * wholes), np.hypot(of_counts, of_rows))

    def _with_zeros(self, queries: QuerySet, answers: Answers) -> Answers:
        """The answers, with zeros that are certain where the rules allow no row."""
        if not self.schema.rules:
            return answers
        cells = CellRules(self.schema)
        known = (cells.zeros(block) for block in queries.blocks)
        zeros = np.concatenate(
            [
                np.zeros(block.size, np.bool_) if found is None else found
                for block, found in zip(queries.blocks, known, strict=True)
            ]
        )

        def cleared(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.where(zeros, 0.0, values)

        errors, of_counts = answers.standard_errors, answers.count_standard_errors
        return Answers(
            cleared(answers.values),
            None if errors is None else cleared(errors),
            None if of_counts is None else cleared(of_counts),
        )

    def _wholes(self, queries: QuerySet) -> NDArray[np.float64]:
        """The denominator of each fraction, per row: one, or the model's count of the whole."""
        wholes = {block.whole for block in queries.blocks if block.whole is not None}
        counted = {whole: self.model.answer(QuerySet([whole])).values[0] for whole in wholes}
        each = [1.0 if block.whole is None else counted[block.whole] for block in queries.blocks]
        return np.repeat(each, np.diff(queries.offsets))

    def sample(self, rows: int, seed: int) -> Chunk:
        """Draw exactly `rows` rows (groups, if rows are linked) in the declared types."""
        return sample_rows(self.model, self.schema, rows=rows, rng=np.random.default_rng(seed))

    def to_bytes(self) -> bytes:
        """The model as a NumPy archive of plain arrays."""
        about = {
            "format": MODEL_FORMAT,
            "kind": self.model.kind,
            "rows": self.estimated_rows,
            "schema": self.schema.model_dump(mode="json"),
            "measured": None if self.measured is None else self.measured.to_plain(),
            "error_bars": None if self.error_bars is None else self.error_bars.to_values(),
        }
        buffer = BytesIO()
        arrays: dict[str, Any] = self.model.to_arrays()
        np.savez_compressed(buffer, about=np.array(json.dumps(about)), **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the output of `to_bytes`. No code in it is executed."""
        with np.load(BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        about = json.loads(str(arrays.pop("about")))
        if about["format"] != MODEL_FORMAT:
            raise ValueError(f"not a model of this version: {about['format']}")
        declared = LinkedSchema if "group_attributes" in about["schema"] else Schema
        schema = declared.model_validate_json(json.dumps(about["schema"]))
        model = KINDS[about["kind"]].from_arrays(arrays, rows=about["rows"], schema=schema)
        known, stored = about.get("measured"), about.get("error_bars")
        measured = None if known is None else MeasuredQueries.from_plain(known)
        bars = None if stored is None else ErrorBars.from_values(stored)
        return cls(schema, about["rows"], model, measured, bars)

    def save(self, path: Path) -> None:
        """Write the model to a file."""
        path.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a model from a file."""
        return cls.from_bytes(path.read_bytes())
