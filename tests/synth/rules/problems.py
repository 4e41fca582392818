"""Small tables with rules: one of rows, and one of groups of individuals."""

from typing import Any

import numpy as np

from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from synth.rules.groups import GroupRules
from synth.rules.row_rules import Flags, RowRules
from synth.table import Chunk, Table, draw_values
from synth.table.linking import draw_groups

ROW_RULES: list[dict[str, Any]] = [
    {"when": {"rel": ["Husband"]}, "then": {"sex": ["M"]}},
    {"never": {"rel": ["Wife"], "sex": ["M"]}},
    {"when": {"age": {"max": 14}}, "then": {"rel": ["Child", None]}},
    {"compare": ["start", "<=", "end"]},
]
"""A rule that cuts a bin of age, and one inside bins of start and end, among others."""


def of_values(name: str, *values: str, **changes: Any) -> dict[str, Any]:
    """A column of values that is never missing, unless the changes say so."""
    plain = {"other": values[-1], "nullable": False, **changes}
    return {"name": name, "type": "categorical", "values": list(values), **plain}


def of_numbers(name: str, lower: int, upper: int, width: int, **changes: Any) -> dict[str, Any]:
    """A column of whole numbers in bins."""
    bounds = {"lower": lower, "upper": upper, "bins": {"width": width}}
    return {"name": name, "type": "integer", **bounds, **changes}


SCHEMA = Schema.model_validate(
    {
        "columns": [
            of_values("sex", "F", "M"),
            of_values("rel", "Husband", "Wife", "Child", nullable=True),
            of_numbers("age", 0, 39, 10),
            of_numbers("start", 0, 9, 5),
            of_numbers("end", 2, 9, 4),
        ],
        "rules": ROW_RULES,
    },
    strict=False,
)
GROUP_RULES: list[dict[str, Any]] = [
    {"group": {"where": {"rel": ["head"]}, "exactly": 1}},
    {"group": {"where": {"age": {"min": 18}}, "at_least": 1}},
    {"when": {"rel": ["head"]}, "then": {"age": {"min": 16}}},
    {"compare": ["age", "<=", "oldest"]},
    {"never": {"kind": ["flat"], "oldest": {"max": 24}}},
]
TWO_LEVEL = TwoLevelSchema.model_validate(
    {
        "groups": {
            "key": "id",
            "columns": [
                of_values("kind", "flat", "home"),
                of_numbers("oldest", 0, 39, 10, nullable=False),
            ],
        },
        "individuals": {
            "group_key": "home",
            "columns": [
                of_values("rel", "head", "kin"),
                of_numbers("age", 0, 39, 10, nullable=False),
            ],
        },
        "max_group_size": 3,
        "rules": GROUP_RULES,
    },
    strict=False,
)
LINKED = TWO_LEVEL.linked


def random_chunk(schema: Schema, rows: int, seed: int = 0) -> Chunk:
    """Rows of uniform codes; most of them break a rule."""
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(size, size=rows) for name, size in schema.sizes.items()}
    return draw_values(schema, codes, rng)


def random_table(rows: int = 300, seed: int = 0) -> Table:
    return Table(SCHEMA, [random_chunk(SCHEMA, rows, seed)])


def random_groups(groups: int = 150, seed: int = 0) -> Chunk:
    """Groups of uniform codes; most of them break a rule."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, groups)
    return draw_groups(LINKED, {}, sizes=sizes, rng=rng)


def broken(chunk: Chunk, schema: Schema) -> Flags:
    """Rows, or groups, that break a rule."""
    if schema.is_linked:
        return GroupRules(LINKED).broken(chunk)
    return RowRules(SCHEMA).broken(chunk)


def breaks_by_hand(row: dict[str, Any]) -> bool:
    """Whether a row of declared values breaks a rule of ROW_RULES; None is missing."""
    return (
        (row["rel"] == "Husband" and row["sex"] != "M")
        or (row["rel"] == "Wife" and row["sex"] == "M")
        or (row["age"] is not None and row["age"] <= 14 and row["rel"] not in ("Child", None))
        or (None not in (row["start"], row["end"]) and row["start"] > row["end"])
    )
