"""The distribution of largest entropy that fits noisy marginals.

Paper: McKenna, Sheldon, Miklau (2019): the marginals that are closest in least squares,
weighted by the noise of each measurement, and of all distributions that have them the one of largest
entropy, which is a graphical model.
Departures: entropy has its own weight w, which makes the solution unique and its potentials finite,
and fits noise less (docs/defaults.md). Instead of mirror descent on marginals, the dual is minimised,
which has no constraints: with y the measured fractions, s their noise, and m(t) the marginals of the
model with potentials t, it is

    log Z(t) - <t, y> + w/2 sum s^2 t^2,    and its gradient is    m(t) - y + w s^2 t.

At the minimum t = (y - m) / (w s^2), which is also where sum (m - y)^2 / (2 s^2) - w entropy(m) is
smallest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from synth.graphical.descent import Point, minimise
from synth.graphical.junction_tree import JunctionTree
from synth.graphical.propagation import propagate
from synth.planning.triangulation import Attributes

ENTROPY_WEIGHT = 0.5
"""Weight of entropy, relative to the largest noise: at a potential of one, such a cell is off by half of
its noise."""
CLOSE = 0.1
"""A fit ends when the root mean square of gradient / noise is below this value."""


@dataclass(frozen=True)
class Evidence:
    """Measured fractions of a marginal, one axis per attribute."""

    attributes: Attributes
    values: torch.Tensor
    noise: torch.Tensor
    """Standard deviation of each value, above 0; infinite if the cell was not measured."""


def estimate(
    tree: JunctionTree,
    evidence: Sequence[Evidence],
    *,
    start: Mapping[Attributes, torch.Tensor],
    steps: int,
    close: float = CLOSE,
) -> dict[Attributes, torch.Tensor]:
    """Potentials over the measured marginals, starting from those of an earlier fit."""
    names = [each.attributes for each in evidence]
    shapes = [each.values.shape for each in evidence]
    values = torch.cat([_adding_up(each).flatten() for each in evidence])
    noise = torch.cat([each.noise.flatten() for each in evidence])
    measured = noise.isfinite()
    ridge = (entropy_weight(noise) * noise.square()).where(measured, 0.0)

    def evaluate(flat: torch.Tensor) -> Point:
        beliefs = propagate(tree, _split(flat, names, shapes))
        tables = beliefs.inside(names)
        fractions = torch.cat([tables[attributes].flatten() for attributes in names])
        value = beliefs.log_partition - flat @ values + ridge @ flat.square() / 2
        gradient = (fractions - values + ridge * flat).where(measured, 0.0)
        curvature = (fractions * (1 - fractions) + ridge).where(measured, 1.0)
        return Point(flat, float(value), gradient, curvature)

    def is_close(point: Point) -> bool:
        return bool((point.gradient / noise)[measured].square().mean() <= close**2)

    before = [start.get(each.attributes, torch.zeros_like(each.values)) for each in evidence]
    flat = torch.cat([table.flatten() for table in before])
    found = minimise(evaluate, flat, is_close=is_close, steps=steps)
    return _split(found.place, names, shapes)


def entropy_weight(noise: torch.Tensor) -> torch.Tensor:
    """The weight w for measurements with that noise.

    It follows from the largest noise, so that it does not flatten the noisiest measurements.
    """
    return ENTROPY_WEIGHT / noise[noise.isfinite()].max()


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


def _split(
    flat: torch.Tensor, names: Sequence[Attributes], shapes: Sequence[torch.Size]
) -> dict[Attributes, torch.Tensor]:
    parts = torch.split(flat, [shape.numel() for shape in shapes])
    return {
        attributes: part.reshape(shape)
        for attributes, part, shape in zip(names, parts, shapes, strict=True)
    }
