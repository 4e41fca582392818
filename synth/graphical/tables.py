"""Adding many small tables to a large one, and summing a large table to many small ones.

Both work attribute by attribute, so the number of passes over the large table is about its number of
attributes, not the number of small tables.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch

from synth.planning.triangulation import Attributes


def spread(
    tables: Mapping[Attributes, torch.Tensor],
    attributes: Attributes,
    shape: Sequence[int],
    *,
    into: torch.Tensor | None = None,
) -> torch.Tensor:
    """Add the tables, each repeated along the attributes that it lacks.

    The result can be expanded to `shape`. If it already has that shape, it may be stored in `into`.
    """
    axis = _lacking(tables, attributes, shape)
    if axis is None:
        return tables[attributes] if tables else torch.zeros((), dtype=torch.float64)
    name = attributes[axis]
    without = {names: table for names, table in tables.items() if name not in names}
    having = {names: table for names, table in tables.items() if name in names}
    below = spread(without, *_drop(attributes, shape, axis)).unsqueeze(axis)
    if not having:
        return below
    above = spread(having, attributes, shape, into=into)
    is_whole = torch.broadcast_shapes(above.shape, below.shape) == tuple(shape)
    return torch.add(above, below, out=into if is_whole else None)


def gather(
    table: torch.Tensor, attributes: Attributes, wanted: Iterable[Attributes]
) -> dict[Attributes, torch.Tensor]:
    """Sum a table to each of the wanted sets of attributes."""
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
    """The widest attribute that some table lacks: summing over it shrinks the tables most."""
    lacking = [i for i, name in enumerate(attributes) if any(name not in t for t in tables)]
    return max(lacking, key=lambda i: shape[i], default=None)


def _drop(
    attributes: Attributes, shape: Sequence[int], axis: int
) -> tuple[Attributes, tuple[int, ...]]:
    return (
        (*attributes[:axis], *attributes[axis + 1 :]),
        (*shape[:axis], *shape[axis + 1 :]),
    )
