"""Rows in the declared types, drawn from the codes of a model."""

from collections.abc import Mapping

import numpy as np

from scrim.spec.schema import Schema
from scrim.spec.two_level import LinkedSchema
from synth.domain import SIZE
from synth.table.chunk import Array, Chunk
from synth.table.encoding import draw_values
from synth.table.linking import draw_groups


def draw_rows(
    schema: Schema, codes: Mapping[str, Array], *, rows: int, rng: np.random.Generator
) -> Chunk:
    """Draw `rows` rows, or groups if rows are linked, given their codes.

    Numbers are drawn inside their bins, and columns without codes are drawn uniformly. The codes of
    groups include their sizes.
    """
    if isinstance(schema, LinkedSchema):
        return draw_groups(schema, codes, sizes=codes[SIZE] + 1, rng=rng)
    return draw_values(schema, all_codes(schema, codes, rows=rows, rng=rng), rng)


def all_codes(
    schema: Schema, codes: Mapping[str, Array], *, rows: int, rng: np.random.Generator
) -> dict[str, Array]:
    """The codes of all columns; those without codes are drawn uniformly."""
    return {
        name: codes[name] if name in codes else rng.integers(size, size=rows)
        for name, size in schema.sizes.items()
    }
