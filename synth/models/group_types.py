"""One weight for every kind of group; a kind is its columns and the multiset of its individuals."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations_with_replacement
from math import comb, prod
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload.hierarchical import Level, as_linked
from synth.domain import SIZE, Domain
from synth.models.base import Answers
from synth.models.sampling import draw_systematically
from synth.planning.memory import CACHED_BYTES
from synth.queries import QuerySet
from synth.queries.hierarchical import refuse_rows


@dataclass(frozen=True)
class Membership:
    """The cells of a table that the individuals of each kind of group are in, and their counts.

    One column per place. Empty places are in an extra cell after all others.
    """

    cells: torch.Tensor
    counts: torch.Tensor
    width: int
    """Number of cells, without the extra one."""

    @cached_property
    def most(self) -> float:
        """The largest total count of one group over all cells."""
        return float(self.counts.where(self.cells < self.width, 0.0).sum(1).max())

    def total(self, weights: torch.Tensor) -> torch.Tensor:
        """Sum weights over kinds of groups: one row per cell."""
        found = weights.new_zeros((self.width + 1, weights.shape[1]))
        for cells, counts in zip(self.cells.T, self.counts.T, strict=True):
            found.index_add_(0, cells, counts[:, None] * weights)
        return found[:-1]

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Sum values, which have one row per cell, over the cells of each kind of group."""
        padded = torch.cat([values, values.new_zeros((1, values.shape[1]))])
        spread = values.new_zeros((len(self.cells), values.shape[1]))
        for cells, counts in zip(self.cells.T, self.counts.T, strict=True):
            spread += counts[:, None] * padded[cells]
        return spread


@dataclass
class GroupTypes:
    """A distribution over kinds of groups: one row per multiset, one column per cell of the groups.

    Columns of a query that the model lacks are independent and uniform. Weights are doubles, as in a
    histogram.
    """

    kind: ClassVar[str] = "group_types"

    schema: LinkedSchema
    of_groups: Domain
    of_individuals: Domain
    weights: torch.Tensor
    _memberships: dict[tuple[Level, tuple[str, ...], int], Membership] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def uniform(cls, schema: LinkedSchema, used: Collection[str]) -> Self:
        """Return the start: all sizes equally likely, with independent and uniform individuals."""
        model = cls._over(schema, used)
        model.weights = model._chance[:, None].repeat(1, model.of_groups.cells)
        model.weights /= model.weights.sum()
        return model

    @classmethod
    def _over(cls, schema: LinkedSchema, used: Collection[str]) -> Self:
        domain = Domain.of(schema)
        described = set(schema.group_attributes)
        return cls(
            schema,
            domain.project(name for name in used if name in described),
            domain.project(name for name in used if name not in described),
            torch.empty(0, dtype=torch.float64),
        )

    def answer(self, queries: QuerySet) -> Answers:
        """Answers per group. Their error depends on what was not measured, so none is stated."""
        refuse_rows(queries.blocks)
        return Answers(queries.on_group_types(self).numpy())

    def sizes(self) -> torch.Tensor:
        """The share of groups of each size."""
        return self.size_membership().total(self.summed(())).flatten()

    def table(
        self, level: Level, *, of_groups: Sequence[str], of_individuals: Sequence[str]
    ) -> torch.Tensor:
        """The count per group of every combination of the columns' values, at one level."""
        membership = self.membership(level, of_individuals)
        cells = membership.total(self.summed(of_groups)).T
        return _expanded(cells, [*of_groups, *of_individuals], self._known, self.schema)

    def membership(self, level: Level, own: Sequence[str]) -> Membership:
        """The membership of each kind of group in the cells of some columns of individuals."""
        known = self.of_individuals.project(own)
        # The number of kinds of individuals that the model cannot distinguish; all are equally likely.
        alike = Domain.of(self.schema).project(own).cells // known.cells
        key = (level, known.names, alike)
        found = self._memberships.get(key)
        if found is None:
            found = self._new_membership(level, known, share=1 / alike)
            used = (len(self._memberships) + 1) * (found.cells.nbytes + found.counts.nbytes)
            if used <= CACHED_BYTES:
                self._memberships[key] = found
        return found

    def size_membership(self) -> Membership:
        """The membership of each kind of group in the sizes."""
        counts = torch.ones((len(self._sizes), 1), dtype=torch.float64)
        return Membership(self._sizes[:, None] - 1, counts, self.schema.max_group_size)

    def _new_membership(self, level: Level, known: Domain, *, share: float) -> Membership:
        cell_of_kind = np.zeros(self.of_individuals.cells + 1, np.int64)
        codes = _unravelled(np.arange(self.of_individuals.cells), self.of_individuals)
        for name, size in zip(known.names, known.sizes, strict=True):
            cell_of_kind[:-1] = cell_of_kind[:-1] * size + codes[name]
        cell_of_kind[-1] = known.cells
        cells = torch.from_numpy(cell_of_kind)[self.members]
        counts = torch.full(cells.shape, share, dtype=torch.float64)
        if level == "group":
            # Only the first individual in a cell counts; if kinds look alike, the first that matches.
            for place in range(1, cells.shape[1]):
                earlier = (cells[:, :place] == cells[:, place, None]).sum(1)
                counts[:, place] *= (1 - share) ** earlier
        return Membership(cells, counts, known.cells)

    def variance(self, of_groups: Sequence[str], values: torch.Tensor) -> torch.Tensor:
        """The variance of values that have one column for each cell of some group columns."""
        weights = self.summed(of_groups)
        mean = (weights * values).sum()
        return (weights * (values - mean).square()).sum()

    def reweight(self, of_groups: Sequence[str], exponents: torch.Tensor) -> None:
        """Multiply by exponentials, one column for each cell of some group columns, and normalise."""
        factors = (exponents - exponents.max()).exp()
        known = self.of_groups.project(of_groups)
        shape = [s if n in known.names else 1 for n, s in self.of_groups.size_of.items()]
        shaped = self.weights.view(-1, *self.of_groups.sizes)
        shaped *= factors.reshape(-1, *shape)
        self.weights /= self.weights.sum()

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw groups by systematic sampling, which keeps every kind within one of its share.

        The same holds for every cell of the groups and every size within a cell, because they are in order.
        """
        drawn = draw_systematically(self.weights.T.numpy().ravel(), rows, rng)
        cell, multiset = np.unravel_index(drawn, tuple(self.weights.T.shape))
        members = self.members.numpy()[multiset]
        taken = members[members < self.of_individuals.cells]
        return {
            SIZE: self._sizes.numpy()[multiset] - 1,
            **_unravelled(cell, self.of_groups),
            **_unravelled(taken, self.of_individuals),
        }

    @property
    def _known(self) -> set[str]:
        return {*self.of_groups.names, *self.of_individuals.names}

    def summed(self, of_groups: Sequence[str]) -> torch.Tensor:
        """The weights, summed over all other group columns."""
        kept = self.of_groups.project(of_groups)
        axes = [i for i, n in enumerate(self.of_groups.names, start=1) if n not in kept.names]
        shaped = self.weights.view(-1, *self.of_groups.sizes)
        return (shaped.sum(axes) if axes else shaped).reshape(-1, kept.cells)

    @cached_property
    def members(self) -> torch.Tensor:
        """The kind of individual at each place of each multiset; one past the last kind if it is empty."""
        kinds, places = self.of_individuals.cells, self.schema.max_group_size
        parts = []
        for size in range(1, places + 1):
            count = comb(kinds + size - 1, size)
            flat = chain.from_iterable(combinations_with_replacement(range(kinds), size))
            members = np.full((count, places), kinds, np.int64)
            members[:, :size] = np.fromiter(flat, np.int64, count * size).reshape(count, size)
            parts.append(members)
        return torch.from_numpy(np.concatenate(parts))

    @cached_property
    def _sizes(self) -> torch.Tensor:
        return (self.members < self.of_individuals.cells).sum(1)

    @property
    def _chance(self) -> torch.Tensor:
        """The probability of each multiset among multisets of its size, for independent individuals."""
        repeated = torch.ones(len(self.members), dtype=torch.float64)
        chance = self._sizes.double().add(1).lgamma()
        chance -= self._sizes * np.log(self.of_individuals.cells)
        for place in range(1, self.members.shape[1]):
            same = self.members[:, place] == self.members[:, place - 1]
            repeated = torch.where(same, repeated + 1, 1.0)
            chance -= torch.where(place < self._sizes, repeated.log(), 0.0)
        return chance.exp()

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The weights, in single precision: their noise is far larger than the rounding."""
        return {
            "names": np.array(sorted(self._known), dtype=np.str_),
            "weights": self.weights.numpy().astype(np.float32),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the distribution from the output of `to_arrays`."""
        model = cls._over(as_linked(schema), arrays["names"].tolist())
        weights = torch.from_numpy(arrays["weights"].astype(np.float64))
        model.weights = weights / weights.sum()
        return model


def _expanded(
    table: torch.Tensor, names: Sequence[str], known: Collection[str], schema: LinkedSchema
) -> torch.Tensor:
    """Expand a table of known columns by the other columns, which are uniform."""
    sizes = [schema.sizes[name] for name in names]
    shape = [size if name in known else 1 for name, size in zip(names, sizes, strict=True)]
    unknown = [n for n in names if n not in known and n in set(schema.group_attributes)]
    repeated = prod(schema.sizes[name] for name in unknown)
    return (table.reshape(shape) / repeated).expand(sizes)


def _unravelled(cells: NDArray[np.int64], domain: Domain) -> dict[str, NDArray[np.int64]]:
    if not domain.names:
        return {}
    return dict(zip(domain.names, np.unravel_index(cells, domain.sizes), strict=True))
