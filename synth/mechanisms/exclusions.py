"""What rules exclude from a graphical model: potentials under which it has practically no rows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch

from synth.graphical.estimation import Evidence
from synth.planning.triangulation import Attributes
from synth.rules.cells import CellRules

EXCLUDED = -50.0
"""Potential of an impossible cell: its share is below 1e-20 of that of others."""


@dataclass(frozen=True)
class Exclusions:
    """The impossible cells of tables; `cells` is None if there are no rules."""

    cells: CellRules | None

    def potentials(self, sets: Iterable[Attributes]) -> dict[Attributes, torch.Tensor]:
        """A potential for each table that has impossible cells."""
        found: dict[Attributes, torch.Tensor] = {}
        for attributes in dict.fromkeys(sets):
            impossible = self._of(attributes)
            if impossible is not None:
                found[attributes] = torch.where(impossible, EXCLUDED, 0.0).double()
        return found

    def without(self, evidence: Evidence) -> Evidence:
        """The evidence on the other cells; if all were measured, their fractions sum to one."""
        impossible = self._of(evidence.attributes)
        if impossible is None:
            return evidence
        values, noise = evidence.values, evidence.noise
        if noise.isfinite().all():
            variance = noise.square().where(~impossible, 0.0)
            values = values - (values.where(~impossible, 0.0).sum() - 1) * variance / variance.sum()
        return replace(
            evidence,
            values=values.where(~impossible, 0.0),
            noise=noise.where(~impossible, torch.inf),
        )

    def _of(self, attributes: Attributes) -> torch.Tensor | None:
        found = None if self.cells is None else self.cells.of_columns(attributes)
        return None if found is None or found.all() else torch.from_numpy(found)
