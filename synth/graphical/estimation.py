"""The distribution of largest entropy that fits noisy marginals.

Paper: McKenna, Sheldon, Miklau (2019): the marginals that are closest in least squares,
weighted by the noise of each measurement, and of all distributions that have them the one of largest
entropy, which is a graphical model.
Departures: entropy has its own weight w, which makes the solution unique and its potentials finite,
and fits noise less (docs/defaults.md). It is entropy relative to a base b, a model given by its
potentials: what the measurements do not say follows the base instead of the uniform distribution.
Instead of mirror descent on marginals, the dual is minimised, which has no constraints: with y the
measured fractions, s their noise, and m(t) the marginals of the model with potentials b + t, it is

    log Z(b + t) - <t, y> + w/2 sum s^2 t^2,    and its gradient is    m(t) - y + w s^2 t.

At the minimum t = (y - m) / (w s^2), which is also where sum (m - y)^2 / (2 s^2) + w KL(m, base) is
smallest. Without a base, the divergence is the negative entropy, up to a constant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import torch

from synth.graphical.descent import Point, Step, minimise
from synth.graphical.junction_tree import JunctionTree
from synth.graphical.propagation import Tables, new_tables, propagate
from synth.planning.triangulation import Attributes

ENTROPY_WEIGHT = 1.0
"""Weight of entropy, relative to the largest noise: at a potential of one, such a cell is off by its
noise."""
CLOSE = 0.1
"""A fit ends when the root mean square of gradient / noise is below this value."""


@dataclass(frozen=True)
class Evidence:
    """Measured fractions of a marginal, one axis per attribute."""

    attributes: Attributes
    values: torch.Tensor
    noise: torch.Tensor
    """Standard deviation of each value, above 0; infinite if the cell was not measured."""


@dataclass(frozen=True)
class Fit:
    """Potentials over the measured marginals, relative to the base; and the last steps of the fit."""

    potentials: Mapping[Attributes, torch.Tensor] = field(default_factory=dict)
    past: Sequence[Step] = ()

    def steps_for(self, names: Sequence[Attributes], size: int) -> list[Step]:
        """The last steps, for a fit to the same marginals in the same order, and to others after them."""
        if list(self.potentials) != list(names[: len(self.potentials)]):
            return []
        return [(_padded(moved, size), _padded(turned, size)) for moved, turned in self.past]


NOTHING = Fit()
"""The start of the first fit."""


def estimate(
    tree: JunctionTree,
    evidence: Sequence[Evidence],
    *,
    base: Tables = MappingProxyType({}),
    start: Fit = NOTHING,
    steps: int,
    close: float = CLOSE,
    weight: float = ENTROPY_WEIGHT,
) -> Fit:
    """Fit potentials over the measured marginals, starting from an earlier fit."""
    names = [each.attributes for each in evidence]
    shapes = [each.values.shape for each in evidence]
    values = torch.cat([_adding_up(each).flatten() for each in evidence])
    noise = torch.cat([each.noise.flatten() for each in evidence])
    measured = noise.isfinite()
    ridge = (entropy_weight(noise, weight) * noise.square()).where(measured, 0.0)
    memory = new_tables(tree)

    def evaluate(flat: torch.Tensor) -> Point:
        beliefs = propagate(tree, add(base, _split(flat, names, shapes)), into=memory)
        tables = beliefs.inside(names)
        fractions = torch.cat([tables[attributes].flatten() for attributes in names])
        value = beliefs.log_partition - flat @ values + ridge @ flat.square() / 2
        gradient = (fractions - values + ridge * flat).where(measured, 0.0)
        curvature = (fractions * (1 - fractions) + ridge).where(measured, 1.0)
        return Point(flat, float(value), gradient, curvature)

    def is_close(point: Point) -> bool:
        return bool((point.gradient / noise)[measured].square().mean() <= close**2)

    found, past = minimise(
        evaluate,
        torch.cat([_potential(each, start).flatten() for each in evidence]),
        is_close=is_close,
        steps=steps,
        past=start.steps_for(names, len(values)),
    )
    return Fit(_split(found.place, names, shapes), tuple(past))


def entropy_weight(noise: torch.Tensor, weight: float = ENTROPY_WEIGHT) -> torch.Tensor:
    """The weight w for measurements with that noise.

    It follows from the largest noise, so that it does not flatten the noisiest measurements.
    """
    return weight / noise[noise.isfinite()].max()


def add(base: Tables, potentials: Tables) -> dict[Attributes, torch.Tensor]:
    """The sum of two sets of potentials."""
    return {**base, **{n: t + base[n] if n in base else t for n, t in potentials.items()}}


def _adding_up(evidence: Evidence) -> torch.Tensor:
    """Shift the values so that they sum to one, if all are known.

    All distributions sum to one, so this changes least squares by a constant. Without the shift, all
    potentials would have to grow evenly, without effect.
    """
    known = evidence.noise.isfinite()
    if not known.all():
        return evidence.values.where(known, 0.0)
    variance = evidence.noise.square()
    return evidence.values - (evidence.values.sum() - 1) * variance / variance.sum()


def _potential(evidence: Evidence, start: Fit) -> torch.Tensor:
    """Where the fit of a marginal starts."""
    return start.potentials.get(evidence.attributes, torch.zeros_like(evidence.values))


def _padded(vector: torch.Tensor, size: int) -> torch.Tensor:
    return torch.nn.functional.pad(vector, (0, size - len(vector)))


def _split(
    flat: torch.Tensor, names: Sequence[Attributes], shapes: Sequence[torch.Size]
) -> dict[Attributes, torch.Tensor]:
    parts = torch.split(flat, [shape.numel() for shape in shapes])
    return {
        attributes: part.reshape(shape)
        for attributes, part, shape in zip(names, parts, shapes, strict=True)
    }
