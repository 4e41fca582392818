"""Many small tables and a large one: adding them up to it, and summing it down to them.

Both go attribute by attribute, so that the large table is passed over about as often as it has
attributes, not as often as there are small ones.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch

from synth.planning.triangulation import Attributes


def spread(
    tables: Mapping[Attributes, torch.Tensor], attributes: Attributes, shape: Sequence[int]
) -> torch.Tensor:
    """The sum of some tables, each repeated along the attributes that it lacks."""
    axis = _lacking(tables, attributes, shape)
    if axis is None:
        return tables[attributes] if tables else torch.zeros((), dtype=torch.float64)
    name = attributes[axis]
    without = {names: table for names, table in tables.items() if name not in names}
    having = {names: table for names, table in tables.items() if name in names}
    below = spread(without, *_drop(attributes, shape, axis)).unsqueeze(axis)
    return spread(having, attributes, shape) + below if having else below


def gather(
    table: torch.Tensor, attributes: Attributes, wanted: Iterable[Attributes]
) -> dict[Attributes, torch.Tensor]:
    """Sums of a table over the attributes that each of some smaller ones lacks."""
    wanted = dict.fromkeys(wanted)
    axis = _lacking(wanted, attributes, table.shape)
    if axis is None:
        return dict.fromkeys(wanted, table)
    name = attributes[axis]
    smaller, _ = _drop(attributes, table.shape, axis)
    without = [names for names in wanted if name not in names]
    having = [names for names in wanted if name in names]
    return gather(table.sum(axis), smaller, without) | gather(table, attributes, having)


def _lacking(
    tables: Iterable[Attributes], attributes: Attributes, shape: Sequence[int]
) -> int | None:
    """The widest attribute that some table lacks: the tables that lack it become smallest."""
    lacking = [i for i, name in enumerate(attributes) if any(name not in t for t in tables)]
    return max(lacking, key=lambda i: shape[i], default=None)


def _drop(
    attributes: Attributes, shape: Sequence[int], axis: int
) -> tuple[Attributes, tuple[int, ...]]:
    return (
        (*attributes[:axis], *attributes[axis + 1 :]),
        (*shape[:axis], *shape[axis + 1 :]),
    )
