"""A graphical model: potentials over small sets of attributes, and exact answers from them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.graphical.elimination import Elimination
from synth.graphical.junction_tree import JunctionTree
from synth.graphical.propagation import Beliefs, propagate
from synth.graphical.sampling import draw_rows
from synth.models.base import Answers
from synth.planning.triangulation import Attributes
from synth.queries import QuerySet


@dataclass(frozen=True)
class GraphicalModel:
    """The distribution proportional to the exponential of the sum of its potentials.

    A potential is a table over some attributes, in the domain's order. Attributes of a query that the
    model lacks are independent and uniform, as in a histogram.
    """

    kind: ClassVar[str] = "graphical"

    domain: Domain
    potentials: Mapping[Attributes, torch.Tensor]

    @cached_property
    def beliefs(self) -> Beliefs:
        """The distribution of every clique."""
        return propagate(JunctionTree.of(self.potentials, self.domain), self.potentials)

    def answer(self, queries: QuerySet) -> Answers:
        """Answers as fractions. Their error depends on what was not measured, so none is stated."""
        return Answers(queries.on_histogram(self).numpy())

    def marginals(self, sets: Sequence[Sequence[str]]) -> Iterator[torch.Tensor]:
        """The cross table of each set, without attributes the model lacks, in the domain's order."""
        wanted = [self.domain.project(attributes).names for attributes in sets]
        tree = self.beliefs.tree
        held = [attributes for attributes in wanted if tree.place(attributes).clique is not None]
        inside = self.beliefs.inside(held)
        across = Elimination.of(self.beliefs)
        for attributes in wanted:
            yield inside[attributes] if attributes in inside else across.marginal(attributes)

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw rows along the junction tree; their tables stay close to its own."""
        return draw_rows(self.beliefs, rows, rng)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The potentials; everything else follows from them."""
        arrays: dict[str, NDArray[Any]] = {
            "names": np.array(self.domain.names),
            "sizes": np.array(self.domain.sizes),
        }
        for i, (attributes, table) in enumerate(self.potentials.items()):
            arrays[f"attributes_{i}"] = np.array(attributes)
            arrays[f"potential_{i}"] = table.numpy()
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the model from the output of `to_arrays`."""
        domain = Domain(tuple(arrays["names"].tolist()), tuple(arrays["sizes"].tolist()))
        count = sum(name.startswith("potential_") for name in arrays)
        return cls(
            domain,
            {
                tuple(arrays[f"attributes_{i}"].tolist()): torch.from_numpy(
                    arrays[f"potential_{i}"]
                )
                for i in range(count)
            },
        )
