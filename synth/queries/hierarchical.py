"""Queries about groups of individuals: tables of groups or of individuals, and group sizes.

A group counts once in every cell that contains one of its individuals. Answers of models are per group:
a share of the groups, or an expected number of individuals in a group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar, Literal, NoReturn

import torch
from numpy.typing import NDArray

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload.hierarchical import (
    NUMBER_OF_INDIVIDUALS,
    GroupSizesBlock,
    HierarchicalBlock,
    Level,
    as_linked,
)
from synth.domain import SIZE, at_place
from synth.queries.block import QueryBlock
from synth.queries.features import Features
from synth.queries.hierarchical_counter import GroupSizeCounter, HierarchicalCounter
from synth.queries.hierarchical_products import products_of
from synth.queries.marginal import code_labels, joined, summed
from synth.queries.readable import GroupKinds, Products, SoftRows


@dataclass(frozen=True)
class LinkedBlock(QueryBlock):
    """Queries about linked rows, which read where each group starts."""

    reads: ClassVar[Literal["codes", "numbers"]] = "codes"

    attributes: tuple[str, ...]
    schema: LinkedSchema = field(hash=False, repr=False)

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The key of the groups, and the block's attributes."""
        return (self.schema.key, *self.attributes)

    @classmethod
    def on_relaxed(cls, blocks: Sequence["QueryBlock"], rows: SoftRows) -> torch.Tensor:
        """Raise SpecError: relaxed rows have no groups."""
        _needs_groups(blocks)

    def features(self, schema: Schema) -> Features:
        """Raise SpecError: single rows have no groups."""
        _needs_groups([self])


@dataclass(frozen=True)
class HierarchicalQueries(LinkedBlock):
    """Counts, at one level, of all combinations of some columns' values, the last varying fastest."""

    level: Level

    @classmethod
    def of(cls, block: HierarchicalBlock, schema: Schema) -> "HierarchicalQueries":
        """The table of a block."""
        return cls(block.attributes, as_linked(schema), block.level)

    @property
    def of_groups(self) -> tuple[str, ...]:
        """The attributes that describe groups; they come first."""
        described = set(self.schema.group_attributes)
        return tuple(name for name in self.attributes if name in described)

    @property
    def of_individuals(self) -> tuple[str, ...]:
        """The attributes that describe individuals."""
        return self.attributes[len(self.of_groups) :]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each attribute."""
        return tuple(self.schema.sizes[name] for name in self.attributes)

    @property
    def size(self) -> int:
        """Number of combinations."""
        return self._block.size(self.schema)

    @property
    def name(self) -> str:
        """The name: what is counted, and by which attributes."""
        return (
            f"{self.level}s by {joined(self.attributes)}" if self.attributes else f"{self.level}s"
        )

    @property
    def whole(self) -> "HierarchicalQueries | None":
        """The number of all individuals, for tables of individuals."""
        return (
            HierarchicalQueries.of(NUMBER_OF_INDIVIDUALS, self.schema)
            if self.level == "individual"
            else None
        )

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """The sensitivity, as in the table of docs/privacy.md, section 3."""
        return self._block.sensitivity(self.schema, protection)

    @property
    def _block(self) -> HierarchicalBlock:
        return HierarchicalBlock(self.attributes, self.level)

    def labels(self, schema: Schema) -> Iterator[str]:
        """Such as `town=yes & contains (sex=F & age=[20, 30))`; for individuals, without `contains`."""
        own = _conjunctions(self.of_individuals, schema)
        if self.level == "group" and self.of_individuals:
            own = [f"contains ({text})" for text in own]
        parts = product(_conjunctions(self.of_groups, schema), own)
        return (" & ".join(filter(None, part)) or f"any {self.level}" for part in parts)

    def shares(self, name: str, counts: NDArray[Any]) -> NDArray[Any] | None:
        """Counts of a group's column in groups, or of an individual's in individuals, for every place."""
        if self.level == "group":
            known = {} if self.of_individuals else {name: name for name in self.attributes}
        else:
            places = range(self.schema.max_group_size)
            known = {at_place(own, place): own for own in self.of_individuals for place in places}
        if name not in known:
            return None
        return summed(counts.reshape(self.sizes), self.attributes.index(known[name]))

    @classmethod
    def counter(cls, blocks: Sequence["HierarchicalQueries"]) -> HierarchicalCounter:
        """Count all of them in one pass over the rows."""
        return HierarchicalCounter(blocks)

    @classmethod
    def on_product(cls, blocks: Sequence["HierarchicalQueries"], mixture: Products) -> torch.Tensor:
        """Answers per group, on a mixture over whole groups (`domain_of_groups`)."""
        return products_of(tuple(blocks), mixture.domain).answers(mixture)

    @classmethod
    def on_group_types(
        cls, blocks: Sequence["HierarchicalQueries"], types: GroupKinds
    ) -> list[torch.Tensor]:
        """Sums over the kinds of groups that are in each cell."""
        return [
            types.table(g.level, of_groups=g.of_groups, of_individuals=g.of_individuals).flatten()
            for g in blocks
        ]


@dataclass(frozen=True)
class GroupSizeQueries(LinkedBlock):
    """The number of groups with one individual, two, and so on."""

    @classmethod
    def of(cls, block: GroupSizesBlock, schema: Schema) -> "GroupSizeQueries":
        """All sizes that the schema allows."""
        return cls((), as_linked(schema))

    @property
    def size(self) -> int:
        """One query for each size."""
        return GroupSizesBlock(()).size(self.schema)

    @property
    def name(self) -> str:
        """A fixed name, which no table of columns has."""
        return "group sizes"

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """The sensitivity, as in the table of docs/privacy.md, section 3."""
        return GroupSizesBlock(()).sensitivity(self.schema, protection)

    def labels(self, schema: Schema) -> Iterator[str]:
        """Such as `size=2`."""
        return (f"size={size}" for size in range(1, self.size + 1))

    def shares(self, name: str, counts: NDArray[Any]) -> NDArray[Any] | None:
        """The counts of the size; None for columns."""
        return counts if name == SIZE else None

    @classmethod
    def counter(cls, blocks: Sequence["GroupSizeQueries"]) -> GroupSizeCounter:
        """Count the sizes once."""
        first = blocks[0]
        return GroupSizeCounter(first.schema.key, sizes=first.size, blocks=len(blocks))

    @classmethod
    def on_product(cls, blocks: Sequence["GroupSizeQueries"], mixture: Products) -> torch.Tensor:
        """The mean of the components' sizes."""
        shares = mixture.columns([SIZE]).mean(0)
        return shares.repeat(len(blocks))

    @classmethod
    def on_group_types(
        cls, blocks: Sequence["GroupSizeQueries"], types: GroupKinds
    ) -> list[torch.Tensor]:
        """Sums over the kinds of groups of each size."""
        return [types.sizes() for _ in blocks]


def _conjunctions(names: Sequence[str], schema: Schema) -> list[str]:
    """Every combination of values of some columns, as text."""
    parts = [[f"{name}={text}" for text in code_labels(schema, name)] for name in names]
    return [" & ".join(cell) for cell in product(*parts)]


def refuse_rows(blocks: Sequence[QueryBlock]) -> None:
    """Refuse queries that are not about groups of individuals."""
    for block in blocks:
        if not isinstance(block, LinkedBlock):
            raise SpecError(
                f"{block.name} is about rows, but this model has groups of individuals; "
                "ask for hierarchical queries or group_sizes"
            )


def _needs_groups(blocks: Sequence[QueryBlock]) -> NoReturn:
    raise SpecError(f"{blocks[0].name} is about groups, but this model has only rows")
