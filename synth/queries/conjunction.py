"""Conjunctions of conditions on single columns: ranges and prefixes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.population import Protection
from scrim.spec.schema import Attribute, Schema
from scrim.spec.sensitivity import Sensitivity, of_predicates
from scrim.spec.workload.conditions import (
    Conjunction,
    ConjunctionBlock,
    columns_of,
)
from synth.planning.memory import KEPT_PLANS
from synth.queries.block import Counts, QueryBlock
from synth.queries.condition_arrays import MISSING_NUMBER, ConditionArrays, in_bins, in_numbers
from synth.queries.condition_labels import condition_labels
from synth.queries.conjunction_products import BinRows, ConjunctionProducts, SoftPlaces
from synth.queries.conjunction_sums import ConjunctionSums
from synth.queries.conjunction_weights import ConjunctionWeights
from synth.queries.features import ConjunctionFeatures
from synth.queries.readable import Cells, Products, SoftRows, WeightedRows


@dataclass(frozen=True)
class ConjunctionQueries(QueryBlock):
    """Conjunctions of categories, intervals of numbers, and missing values."""

    reads: ClassVar[Literal["codes", "numbers"]] = "numbers"
    is_whole: ClassVar[bool] = False

    attributes: tuple[str, ...]
    block: ConjunctionBlock
    schema: Schema = field(hash=False, repr=False)
    picked: tuple[int, ...] | None = None
    """Positions of its queries in the block; None for all."""
    known: Sequence[Conjunction] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, block: ConjunctionBlock, schema: Schema) -> "ConjunctionQueries":
        """The conjunctions of a block, listed when they are first needed."""
        return cls(block.attributes, block, schema)

    def only(self, queries: Sequence[int]) -> "ConjunctionQueries":
        """Keep only some queries, so that a fit need not answer those that were not measured."""
        mine = range(self.block.count) if self.picked is None else self.picked
        picked = tuple(mine[query] for query in queries)
        return replace(self, picked=picked, known=[self.conjunctions[query] for query in queries])

    @property
    def size(self) -> int:
        """Number of conjunctions."""
        return self.block.count if self.picked is None else len(self.picked)

    @property
    def name(self) -> str:
        """The name: what determines the queries, such as a seed."""
        of_all = "" if self.picked is None else f", {self.size} of these"
        return self.block.name + of_all

    @cached_property
    def conjunctions(self) -> Sequence[Conjunction]:
        """The conditions of every query."""
        return self.block.item.conjunctions(self.schema) if self.known is None else self.known

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """The sensitivity: a row may satisfy all of them."""
        return of_predicates(self.size, protection)

    def labels(self, schema: Schema) -> Iterator[str]:
        """Such as `sex=F & age in [20, 30)`, `income < 1000` or `age is missing`."""
        label = {column.name: condition_labels(column) for column in schema.attributes}
        for conjunction in self.conjunctions:
            yield " & ".join(label[condition.column](condition) for condition in conjunction)

    @classmethod
    def counter(cls, blocks: Sequence["ConjunctionQueries"]) -> "ConjunctionCounter":
        """Count all of them in one pass over the rows."""
        return ConjunctionCounter(blocks)

    @classmethod
    def on_histogram(
        cls, blocks: Sequence["ConjunctionQueries"], model: Cells
    ) -> list[torch.Tensor]:
        """Sums over tables of each conjunction's columns; columns that the model lacks are uniform."""
        return [_weights(g, model.domain.names).on_histogram(model) for g in blocks]

    @classmethod
    def on_support(
        cls, blocks: Sequence["ConjunctionQueries"], support: WeightedRows
    ) -> list[torch.Tensor]:
        """Sums of the weights of matching rows; attributes that the rows lack are uniform."""
        return [_weights(g, support.domain.names).on_support(support) for g in blocks]

    def matching(self, index: int, support: WeightedRows) -> torch.Tensor:
        """The rows that satisfy one of the conjunctions."""
        conditions = self.conditions_in_bins
        matches = torch.ones(len(support.weights), dtype=torch.bool)
        for position in range(*np.searchsorted(conditions.query, [index, index + 1])):
            codes = support.codes[self.columns[conditions.column[position]].name]
            matches &= (codes >= conditions.low[position]) & (codes < conditions.high[position])
        return matches.nonzero().flatten()

    @classmethod
    def on_product(cls, blocks: Sequence["ConjunctionQueries"], mixture: Products) -> torch.Tensor:
        """Means of products of the probabilities of their conditions."""
        answers = []
        for block in blocks:
            products, rows = block.products_in_bins
            answers.append(products.answers(rows.probabilities(mixture)))
        return torch.cat(answers)

    @classmethod
    def on_relaxed(cls, blocks: Sequence["ConjunctionQueries"], rows: SoftRows) -> torch.Tensor:
        """Means of products of the soft indicators of each row's conditions."""
        answers = []
        for block in blocks:
            products, places = block.products_in_numbers
            answers.append(products.answers(places.probabilities(rows)))
        return torch.cat(answers)

    def features(self, schema: Schema) -> ConjunctionFeatures:
        """The conjunctions themselves."""
        return ConjunctionFeatures(self.conjunctions)

    @cached_property
    def columns(self) -> tuple[Attribute, ...]:
        """The columns with a condition."""
        names = columns_of(self.conjunctions, self.schema)
        return tuple(self.schema.attribute(name) for name in names)

    @cached_property
    def conditions_in_bins(self) -> ConditionArrays:
        """The conditions for models with binned numbers."""
        return in_bins(self.conjunctions, self.columns)

    @cached_property
    def sums_in_numbers(self) -> ConjunctionSums:
        """The plan for counting them."""
        return ConjunctionSums(in_numbers(self.conjunctions, self.columns), self.columns)

    @cached_property
    def products_in_bins(self) -> tuple[ConjunctionProducts, BinRows]:
        """The plan for answering them on a mixture over codes."""
        conditions = self.conditions_in_bins
        return ConjunctionProducts(conditions), BinRows(conditions, self.columns)

    @cached_property
    def products_in_numbers(self) -> tuple[ConjunctionProducts, SoftPlaces]:
        """The plan for answering them on relaxed rows."""
        conditions = in_numbers(self.conjunctions, self.columns)
        return ConjunctionProducts(conditions), SoftPlaces(conditions, self.columns, self.schema)


class ConjunctionCounter:
    """Counts blocks of conjunctions, chunk by chunk."""

    def __init__(self, blocks: Sequence[ConjunctionQueries]) -> None:
        self._blocks = blocks
        self._totals = [np.zeros(block.size, np.int64) for block in blocks]

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Count the rows of one chunk."""
        numbers = {name: _without_nan(column) for name, column in columns.items()}
        ones = np.ones(len(next(iter(columns.values()))), np.int64)
        for block, total in zip(self._blocks, self._totals, strict=True):
            total += block.sums_in_numbers.of(numbers, ones)

    def totals(self) -> list[Counts]:
        """The counts of each block."""
        return self._totals


@lru_cache(maxsize=KEPT_PLANS)
def _weights(block: ConjunctionQueries, names: tuple[str, ...]) -> ConjunctionWeights:
    return ConjunctionWeights(block.conditions_in_bins, block.columns, names)


def _without_nan(numbers: NDArray[Any]) -> NDArray[Any]:
    """Replace missing numbers by MISSING_NUMBER; categories are codes and have a code for missing values."""
    return (
        np.where(np.isnan(numbers), MISSING_NUMBER, numbers)
        if numbers.dtype.kind == "f"
        else numbers
    )
