"""Rows of a model in the declared types, which follow the schema's rules: all that are ever released."""

import numpy as np

from scrim.spec.schema import Schema
from scrim.spec.workload.hierarchical import as_linked
from synth.models.base import Model
from synth.models.rows import Rows
from synth.rules.drawing import change_to_valid, draw_valid
from synth.rules.groups import draw_valid_groups
from synth.table import Chunk
from synth.table.drawing import all_codes, draw_rows


def sample_rows(model: Model, schema: Schema, *, rows: int, rng: np.random.Generator) -> Chunk:
    """Draw exactly `rows` rows (groups, if rows are linked)."""

    def values(number: int) -> Chunk:
        drawn = model.sample(number, rng)
        if isinstance(model, Rows):
            return drawn
        return draw_rows(schema, drawn, rows=number, rng=rng)

    if not schema.rules:
        return values(rows)
    if schema.is_linked:
        return draw_valid_groups(as_linked(schema), values, groups=rows, rng=rng)
    if isinstance(model, Rows):
        return change_to_valid(schema, values(rows), rng)
    return draw_valid(schema, all_codes(schema, model.sample(rows, rng), rows=rows, rng=rng), rng)
