"""Rows of all kinds of columns, and counts of queries over them that are made one row at a time."""

import math
import re
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Schema
from scrim.spec.workload.conditions import Condition, HasCode, InInterval, numeric_columns
from synth.domain import Domain
from synth.models.relaxed import RelaxedRows
from synth.queries import QueryBlock
from synth.queries.coordinates import span_of
from synth.queries.features import CellFeatures, ConjunctionFeatures, Features, HalfspaceFeatures
from synth.table import Table, store_numbers

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {
                "name": "sex",
                "type": "categorical",
                "values": ["F", "M"],
                "other": "M",
                "nullable": False,
            },
            {"name": "job", "type": "categorical", "values": ["a", "b"], "other": "b"},
            {
                "name": "age",
                "type": "integer",
                "lower": 20,
                "upper": 26,
                "bins": {"width": 1},
                "nullable": False,
            },
            {"name": "pay", "type": "real", "lower": -1.0, "upper": 3.0, "bins": {"count": 8}},
            {
                "name": "one",
                "type": "integer",
                "lower": 5,
                "upper": 5,
                "bins": {"width": 1},
                "nullable": False,
            },
        ]
    }
)
DOMAIN = Domain.of(SCHEMA)
NAMES = DOMAIN.names
Row = tuple[Any, ...]
"""Labels of categories, numbers, None where missing."""


def random_rows(count: int) -> list[Row]:
    rng = np.random.default_rng(0)
    pays = [None, -1.0, 0.0, 0.5, 3.0, *rng.uniform(-1, 3, 8)]
    return [
        (
            "FM"[rng.integers(2)],
            ["a", "b", None][rng.integers(3)],
            int(rng.integers(20, 27)),
            pay,
            5,
        )
        for pay in (pays[i] for i in rng.integers(len(pays), size=count))
    ]


ROWS = random_rows(37)
ROW = st.tuples(
    st.sampled_from("FM"),
    st.sampled_from(["a", "b", None]),
    st.integers(20, 26),
    st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 1.0, 2.5, 3.0]), st.floats(-1, 3)),
    st.just(5),
)


def numbers_of(rows: list[Row]) -> dict[str, np.ndarray]:
    """Rows as a table reads numbers."""
    return {
        column.name: np.array([number_of(column.name, row[i]) for row in rows], dtype=np.float64)
        for i, column in enumerate(SCHEMA.attributes)
    }


def number_of(name: str, cell: Any) -> float:
    column = SCHEMA.attribute(name)
    if not isinstance(column, LabelledColumn):
        return math.nan if cell is None else cell
    return len(column.labels) if cell is None else column.labels.index(cell)


def new_table(rows: list[Row], chunk_rows: int = 1000) -> Table:
    parts = [rows[i : i + chunk_rows] for i in range(0, len(rows), chunk_rows)]
    return Table(SCHEMA, [store_numbers(SCHEMA, numbers_of(part)) for part in parts])


def codes_of(rows: list[Row]) -> dict[str, torch.Tensor]:
    (codes,) = new_table(rows).codes(NAMES)
    return {name: torch.from_numpy(codes[name].astype(np.int32)) for name in NAMES}


def by_hand(block: QueryBlock, rows: list[Row]) -> list[int]:
    """Count a block's queries one row at a time, from their labels."""
    named = [dict(zip(NAMES, row, strict=True)) for row in rows]
    if isinstance(block.features(SCHEMA), HalfspaceFeatures):  # whose labels do not tell
        return by_features(block, rows)
    return [
        sum(all(holds(part, row) for part in label.split(" & ")) for row in named)
        for label in block.labels(SCHEMA)
    ]


def holds(part: str, row: dict[str, Any]) -> bool:
    """Whether a condition, as labels write it, holds."""
    matched = re.fullmatch(r"(\w+)(.*?)( \(\w+ of \d+\))?", part)
    assert matched
    name, wanted = matched.groups()[:2]
    cell = row[name]
    if wanted in (" is missing", "=missing"):
        return cell is None
    if cell is None:
        return False
    if below := re.fullmatch(r" < (.+)", wanted):
        return bool(cell < float(below[1]))
    if interval := re.fullmatch(r"(?: in |=)\[(.+), (.+)([)\]])", wanted):
        low, high = float(interval[1]), float(interval[2])
        return low <= cell < high or (interval[3] == "]" and cell == high)
    return wanted == f"={cell}"


def by_features(block: QueryBlock, rows: list[Row]) -> list[int]:
    """Count a block's queries from what its features say about each row."""
    features, numbers = block.features(SCHEMA), numbers_of(rows)
    satisfied = np.zeros((len(rows), block.size), np.int64)
    for i in range(len(rows)):
        row = {name: column[i : i + 1] for name, column in numbers.items()}
        satisfied[i, satisfied_by(row, features)] = 1
    counts: list[int] = satisfied.sum(axis=0).tolist()
    return counts


def satisfied_by(row: dict[str, np.ndarray], features: Features) -> list[int]:
    """The positions of the queries that a row satisfies."""
    if isinstance(features, CellFeatures):
        cells, start = [], 0
        for axes in features.tables:
            sizes = tuple(axis.size for axis in axes)
            codes = [int(axis.codes(row[axis.column])[0]) for axis in axes]
            cells.append(start + int(np.ravel_multi_index(codes, sizes)))
            start += math.prod(sizes)
        return cells
    if isinstance(features, ConjunctionFeatures):
        conjunctions = enumerate(features.conjunctions)
        return [i for i, parts in conjunctions if all(is_true(part, row) for part in parts)]
    sums = sum(part.of(row[name])[0] for name, part in features.contributions.items())
    return np.flatnonzero(sums <= features.thresholds).tolist()


def is_true(condition: Condition, row: dict[str, np.ndarray]) -> bool:
    number = float(row[condition.column][0])
    if isinstance(condition, HasCode):
        return number == condition.code
    if isinstance(condition, InInterval):
        is_upper = condition.high == number == numeric_columns(SCHEMA)[condition.column].line.upper
        return condition.low <= number < condition.high or is_upper
    return math.isnan(number)


def relaxed(rows: list[Row], temperature: float) -> RelaxedRows:
    """Rows that put all on their own categories, at their own places."""
    numbers = {name: torch.from_numpy(column) for name, column in numbers_of(rows).items()}
    categories, places, missing = {}, {}, {}
    for column in SCHEMA.attributes:
        mine = numbers[column.name]
        if isinstance(column, LabelledColumn):
            one_hot = torch.nn.functional.one_hot(mine.long(), column.size)
            categories[column.name] = one_hot.double()
            continue
        places[column.name] = (mine.nan_to_num(column.line.lower) - column.line.lower) / span_of(
            column.line
        )
        if column.nullable:
            missing[column.name] = mine.isnan().double()[:, None]
    return RelaxedRows(SCHEMA, categories, places, missing, temperature)
