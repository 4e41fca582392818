"""Linking groups and individuals into one table of rows, and splitting linked rows into two tables.

Linking reads only a group's own rows, so adding or removing one group changes no other:

- An individual whose group has no row gets a group whose columns are all missing. No individual is
  dropped, and the case is not reported.
- A group without individuals is left out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from scrim.spec.columns import IntegerColumn
from scrim.spec.schema import Attribute, Schema
from scrim.spec.two_level import LinkedSchema, TwoLevelSchema
from synth.table.chunk import DIGEST, Array, Chunk
from synth.table.encoding import attribute_codec, draw_column

Positions = npt.NDArray[np.int64]


def link(groups: Chunk, individuals: Chunk, schema: TwoLevelSchema) -> Chunk:
    """Add the columns of their groups to individuals; the individuals of a group are consecutive.

    All individuals of a group must be in the chunk, and the group's row at most once.
    """
    own_key, linked = schema.individuals.group_key, schema.linked
    order = np.argsort(individuals[own_key], kind="stable")
    keys = individuals[own_key][order]
    described = np.argsort(groups[schema.groups.key])
    found, is_orphan = _find(groups[schema.groups.key][described], keys)
    rows: dict[str, Array] = {linked.key: keys}
    for name in linked.group_attributes:
        known = groups[name][described]
        missing = _missing(linked.attribute(name), len(keys))
        # Without groups there is nothing to select from.
        picked = known[found] if len(known) else missing
        rows[name] = np.where(is_orphan, missing, picked).astype(missing.dtype)
    rows |= {name: individuals[name][order] for name in linked.individual_attributes}
    return rows


def _find(sorted_keys: Array, wanted: Array) -> tuple[Positions, npt.NDArray[np.bool_]]:
    """The position of each wanted key, and a mask of the keys that were not found."""
    if not len(sorted_keys):
        return np.zeros(len(wanted), np.int64), np.ones(len(wanted), np.bool_)
    positions = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return positions, sorted_keys[positions] != wanted


def _missing(column: Attribute, rows: int) -> Array:
    """Return `rows` encoded missing cells of a column."""
    return attribute_codec(column).encode(pa.nulls(rows))


def starts_of_groups(keys: Array) -> Positions:
    """The first row of each group among linked rows, given their keys."""
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = keys[1:] != keys[:-1]
    return np.flatnonzero(is_first)


def groups_in(rows: Chunk, schema: Schema) -> Positions | None:
    """The first row of each group; None if rows have no groups."""
    return None if schema.key is None else starts_of_groups(rows[schema.key])


def edges_of_groups(keys: Array) -> Positions:
    """The first row of each group among linked rows, and the end of the last group."""
    return np.append(starts_of_groups(keys), len(keys))


def number_keys(groups: Positions) -> Array:
    """Keys of released groups, from each row's group number; they match no private key."""
    words = np.zeros((len(groups), 2), np.uint64)
    words[:, 0] = groups.astype(np.uint64) + 1
    return words.view(DIGEST).ravel()


def draw_groups(
    schema: LinkedSchema, codes: Mapping[str, Array], *, sizes: Positions, rng: np.random.Generator
) -> Chunk:
    """Draw linked rows of released groups, given the codes of each group and of each individual.

    A group's numbers are drawn once, inside their bins. Columns without codes are drawn uniformly,
    because the model does not cover them.
    """
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    of_groups = set(schema.group_attributes)
    rows: dict[str, Array] = {schema.key: number_keys(numbers)}
    for column in schema.attributes:
        is_shared = column.name in of_groups
        drawn = len(sizes) if is_shared else len(numbers)
        mine = codes.get(column.name)
        mine = rng.integers(column.size, size=drawn) if mine is None else mine
        values = draw_column(column, mine, rng)
        rows[column.name] = values[numbers] if is_shared else values
    return sorted_within_groups(rows, numbers, schema)


def sorted_within_groups(rows: Chunk, numbers: Positions, schema: LinkedSchema) -> Chunk:
    """Sort the individuals of each group by the column that the schema names, if it names one."""
    if schema.order is None:
        return rows
    order = np.lexsort((rows[schema.order], numbers))
    own = set(schema.individual_attributes)
    return {name: values[order] if name in own else values for name, values in rows.items()}


def unlink(rows: Chunk, schema: LinkedSchema) -> dict[str, tuple[Schema, Chunk]]:
    """Split linked rows into a table of groups and one of individuals, with new keys from 1."""
    starts = starts_of_groups(rows[schema.key])
    sizes = np.diff(starts, append=len(rows[schema.key]))
    numbers = np.arange(len(starts))
    return {
        "groups": _keyed_table(
            schema.key,
            numbers,
            {name: rows[name][starts] for name in schema.group_attributes},
            schema,
        ),
        "individuals": _keyed_table(
            schema.group_key,
            np.repeat(numbers, sizes),
            {name: rows[name] for name in schema.individual_attributes},
            schema,
        ),
    }


def _keyed_table(
    key: str, numbers: Positions, columns: dict[str, Any], schema: LinkedSchema
) -> tuple[Schema, Chunk]:
    """A table whose key is a released number."""
    counted = IntegerColumn(
        name=key,
        type="integer",
        lower=1,
        upper=max(1, int(numbers.max(initial=0)) + 1),
        nullable=False,
    )
    declared = Schema(columns=[counted, *(schema.attribute(name) for name in columns)])
    codes = numbers.astype(attribute_codec(counted).dtype)
    return declared, {key: codes, **columns}
