"""Weights of zero for what rules exclude, before a distribution is fitted."""

from typing import TypeVar

import numpy as np
import torch

from scrim.spec.rules.rule_set import Count
from scrim.spec.schema import Schema
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload.hierarchical import as_linked
from synth.models.group_types import GroupTypes
from synth.models.histogram import Histogram
from synth.models.support import Support
from synth.rules.cells import CellRules
from synth.rules.certain import CodeRules, within
from synth.rules.row_rules import Flags, Integers

Weights = TypeVar("Weights", Histogram, Support, GroupTypes)


def excluding(model: Weights, schema: Schema) -> Weights:
    """The distribution without what the rules exclude; unchanged if nothing would be left."""
    if not schema.rules:
        return model
    excluded = _excluded(model, schema)
    kept = model.weights.where(~excluded, 0.0)
    if kept.sum() > 0:
        model.weights = kept / kept.sum()
    return model


def _excluded(model: Histogram | Support | GroupTypes, schema: Schema) -> torch.Tensor:
    if isinstance(model, GroupTypes):
        return torch.from_numpy(_kinds_of_groups(model, as_linked(schema)))
    if isinstance(model, Support):
        codes = {name: column.numpy() for name, column in model.codes.items()}
        known = {c.name for c in schema.attributes}
        schema = schema.project(known.intersection(codes))
        return torch.from_numpy(CodeRules(schema).broken(codes, len(model.weights)))
    found = CellRules(schema).of_columns(model.domain.names)
    return (
        torch.zeros_like(model.weights, dtype=torch.bool)
        if found is None
        else torch.from_numpy(found)
    )


def _kinds_of_groups(model: GroupTypes, schema: LinkedSchema) -> Flags:
    """Kinds of groups with an impossible individual, or with impossible numbers of individuals."""
    names = (*model.of_groups.names, *model.of_individuals.names)
    shape = (model.of_groups.cells, model.of_individuals.cells)
    found = CellRules(schema).of_columns(names) if names else None
    members = model.members.numpy()
    excluded = np.zeros((len(members), shape[0]), np.bool_)
    if found is not None:
        excluded |= _summed(found.reshape(shape), members) > 0
    for count in schema.rule_set.counts:
        if all(name in names for name in count.parts):
            surely, maybe = (
                _summed(inside.reshape(shape), members) for inside in _counted(count, schema, names)
            )
            excluded |= (surely > count.most) | (maybe < count.least)
    return excluded


def _summed(individuals: Flags, members: Integers) -> Integers:
    """The number of individuals of each kind of group that are in a set, for each cell of the groups."""
    padded = np.append(individuals, np.zeros((len(individuals), 1), np.bool_), axis=1)
    return np.asarray(padded[:, members].sum(axis=2).T, np.int64)


def _counted(count: Count, schema: Schema, names: tuple[str, ...]) -> tuple[Flags, Flags]:
    """Whether each combination of codes is surely counted by a rule about groups, and whether it may be."""
    overlaps = CodeRules(schema).overlaps
    surely, maybe = (np.ones([schema.sizes[n] for n in names], np.bool_) for _ in range(2))
    for name, parts in count.parts.items():
        shape = [schema.sizes[name] if n == name else 1 for n in names]
        surely &= within(overlaps[name], parts).reshape(shape)
        maybe &= overlaps[name][:, sorted(parts)].any(axis=1).reshape(shape)
    return surely, maybe
