"""A compiled workload: groups in order, answered together as one flat vector."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity
from scrim.spec.workload import (
    ConjunctionGroup,
    Group,
    GroupSizesGroup,
    HalfspaceGroup,
    HierarchicalGroup,
    MarginalGroup,
    TreeGroup,
    WorkloadItem,
    expand,
)
from synth.domain import Domain
from synth.queries.binary_tree import BinaryTree
from synth.queries.conjunction import Conjunctions
from synth.queries.group import Counts, QueryGroup, Single
from synth.queries.halfspace import Halfspaces
from synth.queries.hierarchical import GroupSizes, Hierarchical
from synth.queries.marginal import Marginal
from synth.table import Table

if TYPE_CHECKING:
    from synth.models.base import TabularModel
    from synth.models.group_types import GroupTypes
    from synth.models.product import ProductMixture
    from synth.models.relaxed import RelaxedRows
    from synth.models.support import Support


class QuerySet:
    """Groups of queries in order; all answers are flat vectors in that order."""

    def __init__(self, groups: Iterable[QueryGroup]) -> None:
        self.groups = tuple(groups)

    @cached_property
    def offsets(self) -> Counts:
        """Where each group starts in the flat vector, and its length at the end."""
        return np.cumsum([0, *(group.size for group in self.groups)], dtype=np.int64)

    @property
    def size(self) -> int:
        """Number of queries."""
        return int(self.offsets[-1])

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute that some query reads."""
        return tuple(dict.fromkeys(name for group in self.groups for name in group.attributes))

    def split(self, flat: Any) -> list[Any]:
        """A flat vector cut into its groups."""
        return [flat[a:b] for a, b in zip(self.offsets, self.offsets[1:], strict=False)]

    def locate(self, query: int) -> tuple[int, int]:
        """The group of a query, and its position there."""
        group = int(np.searchsorted(self.offsets, query, side="right")) - 1
        return group, query - int(self.offsets[group])

    def candidates(self, among: Literal["marginals", "queries"]) -> Counts:
        """Where each thing that can be selected starts in the flat vector: a group, or a query."""
        if among == "queries":
            return np.arange(self.size)
        starts = [
            start if group.is_whole else np.arange(start, start + group.size)
            for group, start in zip(self.groups, self.offsets, strict=False)
        ]
        return np.hstack(starts)

    def candidate(self, index: int, among: Literal["marginals", "queries"]) -> QueryGroup | Single:
        """One of the things that can be selected."""
        group, position = self.locate(int(self.candidates(among)[index]))
        whole = among == "marginals" and self.groups[group].is_whole
        return self.groups[group] if whole else Single(self.groups[group], position)

    def sensitivities(
        self, among: Literal["marginals", "queries"], protection: Protection
    ) -> list[Sensitivity]:
        """How far a unit can move the counts of each thing that can be selected."""
        found: list[Sensitivity] = []
        for group in self.groups:
            if among == "marginals" and group.is_whole:
                found.append(group.sensitivity(protection))
            else:
                found += [Single(group, 0).sensitivity(protection)] * group.size
        return found

    def count(self, table: Table) -> Counts:
        """True counts over the whole table, chunk by chunk. Only the door may call this."""
        positions = self._positions()
        counters = {cls: cls.counter([self.groups[i] for i in at]) for cls, at in positions.items()}
        for codes, numbers in table.read(codes=self._read("codes"), numbers=self._read("numbers")):
            for cls, counter in counters.items():
                counter.add(codes if cls.reads == "codes" else numbers)
        return np.concatenate(self._by_class(lambda cls, groups: counters[cls].totals()))

    def on_histogram(self, model: "TabularModel") -> torch.Tensor:
        """Answers, as fractions, on a weight per cell of the domain, however they are kept."""
        return self._concatenate(lambda cls, groups: cls.on_histogram(groups, model))

    def on_support(self, support: "Support") -> torch.Tensor:
        """Answers, as fractions, on weighted rows."""
        return self._concatenate(lambda cls, groups: cls.on_support(groups, support))

    def on_group_types(self, types: "GroupTypes") -> torch.Tensor:
        """Answers, per group, on one weight for every kind of group."""
        return self._concatenate(lambda cls, groups: cls.on_group_types(groups, types))

    def on_product(self, mixture: "ProductMixture") -> torch.Tensor:
        """Answers, as fractions and differentiably, on a mixture of products."""
        return self._joined(lambda cls, groups: cls.on_product(groups, mixture))

    def on_relaxed(self, rows: "RelaxedRows") -> torch.Tensor:
        """Answers, as fractions and differentiably, on rows with soft edges."""
        return self._joined(lambda cls, groups: cls.on_relaxed(groups, rows))

    def _joined(
        self, answer: Callable[[type[QueryGroup], Sequence[Any]], torch.Tensor]
    ) -> torch.Tensor:
        positions = self._positions()
        if len(positions) == 1:  # the usual case, without cutting and joining a large tensor
            return answer(next(iter(positions)), self.groups)
        return self._concatenate(
            lambda cls, groups: list(
                torch.split(answer(cls, groups), [group.size for group in groups])
            )
        )

    def _read(self, form: str) -> list[str]:
        """The columns that some query reads in that form."""
        names = (name for g in self.groups if g.reads == form for name in g.columns_read)
        return list(dict.fromkeys(names))

    def _by_class(
        self, answer: Callable[[type[QueryGroup], Sequence[Any]], list[Any]]
    ) -> list[Any]:
        """Let each query class answer all its groups at once; results in the order of the groups."""
        answers: list[Any] = [None] * len(self.groups)
        for cls, indices in self._positions().items():
            for i, found in zip(
                indices, answer(cls, [self.groups[i] for i in indices]), strict=True
            ):
                answers[i] = found
        return answers

    def _positions(self) -> dict[type[QueryGroup], list[int]]:
        positions: dict[type[QueryGroup], list[int]] = {}
        for i, group in enumerate(self.groups):
            positions.setdefault(type(group), []).append(i)
        return positions

    def _concatenate(
        self, answer: Callable[[type[QueryGroup], Sequence[Any]], list[torch.Tensor]]
    ) -> torch.Tensor:
        return torch.cat(self._by_class(answer))


def compile_groups(groups: Iterable[Group], schema: Schema) -> QuerySet:
    """What groups of the public contract mean for data of that schema."""
    return QuerySet(COMPILERS[type(group)](group, schema) for group in groups)


def compile_workload(items: Sequence[WorkloadItem], schema: Schema) -> QuerySet:
    """The groups of a workload, each once, in order."""
    return compile_groups(expand(items, schema), schema)


COMPILERS: dict[type[Group], Callable[[Any, Schema], QueryGroup]] = {
    MarginalGroup: lambda group, schema: Marginal.of(group.attributes, Domain.of(schema)),
    TreeGroup: BinaryTree.of,
    ConjunctionGroup: Conjunctions.of,
    HalfspaceGroup: Halfspaces.of,
    HierarchicalGroup: Hierarchical.of,
    GroupSizesGroup: GroupSizes.of,
}
"""Which query class stands for which group."""
