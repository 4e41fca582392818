"""Small groups of individuals that many tests build, and their queries counted by hand."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from scrim.spec.population import Protection
from scrim.spec.two_level import LinkedSchema, TwoLevelSchema
from synth.queries import GroupSizeQueries, HierarchicalQueries, QueryBlock
from synth.table import Table
from synth.table.encoding import attribute_codec
from synth.table.linking import number_keys

Household = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
"""The codes of a group's columns, and those of each of its individuals."""


def household(size: int, relation: str = "add_remove") -> Protection:
    """A protection of whole groups."""
    return Protection.model_validate(
        {"unit": "household", "relation": relation, "max_household_size": size}
    )


def coded_columns(sizes: Mapping[str, int], **changes: Any) -> list[dict[str, Any]]:
    """Columns of whole numbers 0..size-1, one code each."""
    plain = {"type": "integer", "lower": 0, "bins": {"width": 1}, "nullable": False, **changes}
    return [{"name": name, "upper": size - 1, **plain} for name, size in sizes.items()]


def two_level_schema(
    groups: Mapping[str, int], individuals: Mapping[str, int], size: int, **changes: Any
) -> TwoLevelSchema:
    """Groups of at most `size` individuals."""
    return TwoLevelSchema.model_validate(
        {
            "groups": {
                "key": "id",
                "columns": coded_columns(groups) or [{"name": "id", "type": "identifier"}],
            },
            "individuals": {
                "group_key": "home",
                "columns": coded_columns(individuals) or [{"name": "home", "type": "identifier"}],
                **changes,
            },
            "max_group_size": size,
        }
    )


def linked_table(
    schema: LinkedSchema, households: Sequence[Household], *, chunk_groups: int = 1000
) -> Table:
    """Linked rows of coded groups."""
    chunks = []
    for start in range(0, len(households), chunk_groups):
        some = households[start : start + chunk_groups]
        numbers = np.repeat(np.arange(len(some)), [len(members) for _, members in some])
        rows = [(*group, *member) for group, members in some for member in members]
        matrix = np.array(rows, dtype=np.int64).reshape(len(rows), len(schema.attributes))
        chunk = {schema.key: number_keys(numbers + start)}
        for i, column in enumerate(schema.attributes):
            chunk[column.name] = matrix[:, i].astype(attribute_codec(column).dtype)
        chunks.append(chunk)
    return Table(schema, chunks)


def random_households(schema: LinkedSchema, groups: int, seed: int = 0) -> list[Household]:
    """Groups whose individuals resemble each other and their group."""
    rng = np.random.default_rng(seed)
    sizes, described = schema.sizes, len(schema.group_attributes)
    found = []
    for _ in range(groups):
        group = tuple(int(rng.integers(sizes[name])) for name in schema.group_attributes)
        kin = int(rng.integers(10)) if not described else group[0]
        own = [sizes[name] for name in schema.individual_attributes]
        members = tuple(
            tuple(
                (kin + i) % size if rng.random() < 0.6 else int(rng.integers(size))
                for i, size in enumerate(own)
            )
            for _ in range(int(rng.integers(1, schema.max_group_size + 1)))
        )
        found.append((group, members))
    return found


def by_hand(query: QueryBlock, households: Sequence[Household]) -> list[int]:
    """The counts of one table, group by group."""
    assert isinstance(query, HierarchicalQueries | GroupSizeQueries)
    if isinstance(query, GroupSizeQueries):
        counted = Counter(len(members) for _, members in households)
        return [counted[size + 1] for size in range(query.size)]
    of_groups, own = query.schema.group_attributes, query.schema.individual_attributes
    cells: Counter[tuple[int, ...]] = Counter()
    for group, members in households:
        leading = tuple(group[of_groups.index(name)] for name in query.of_groups)
        kinds = [tuple(m[own.index(name)] for name in query.of_individuals) for m in members]
        cells.update(
            (*leading, *kind) for kind in (set(kinds) if query.level == "group" else kinds)
        )
    return [cells[cell] for cell in product(*(range(size) for size in query.sizes))]
