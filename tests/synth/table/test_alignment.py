"""A public table in the private schema's codes, as if ingested with that schema."""

from typing import Any

import numpy as np
import pytest

from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema
from synth.table import Table, align, read_csv

PRIVATE = Schema.model_validate(
    {
        "columns": [
            {"name": "sex", "type": "categorical", "values": ["F", "M"]},
            {"name": "age", "type": "integer", "lower": 18, "upper": 67, "bins": {"width": 10}},
            {
                "name": "pay",
                "type": "real",
                "lower": 0,
                "upper": 10,
                "bins": {"edges": [0, 2.5, 10]},
                "nullable": False,
            },
        ]
    }
)
# Another order, other categories, bounds and bins, an extra column, an identifier.
PUBLIC = Schema.model_validate(
    {
        "columns": [
            {"name": "pid", "type": "identifier"},
            {"name": "pay", "type": "real", "lower": -5, "upper": 99, "decimals": 0},
            {"name": "town", "type": "categorical", "values": ["x"]},
            {"name": "age", "type": "real", "lower": 0, "upper": 120},
            {"name": "sex", "type": "categorical", "values": ["M", "D", "F"], "other": "unknown"},
        ]
    }
)
LINES = [
    "pid,pay,town,age,sex",
    "1,2.4,x,18,F",
    "2,2.6,x,17,M",
    "3,-1,y,90,D",
    "4,50,x,,Z",
    "5,,x,44.6,",
]


def table(tmp_path: Any, schema: Schema, lines: list[str]) -> Table:
    path = tmp_path / "public.csv"
    path.write_text("\n".join(lines) + "\n")
    return Table(schema, list(read_csv(path, schema)))


def codes(aligned: Table) -> dict[str, list[int]]:
    names = [column.name for column in aligned.schema.attributes]
    chunks = list(aligned.codes(names))
    return {name: np.concatenate([chunk[name] for chunk in chunks]).tolist() for name in names}


def test_cells_mean_the_same_whatever_the_public_declaration(tmp_path: Any) -> None:
    aligned = align(table(tmp_path, PUBLIC, LINES), PRIVATE)
    assert [column.name for column in aligned.schema.columns] == ["sex", "age", "pay"]
    assert codes(aligned) == {
        "sex": [0, 1, 2, 2, 3],  # D and Z are private `other`, the empty cell is missing
        "age": [0, 0, 4, 5, 2],  # 17 and 90 are clamped, the empty cell is missing
        "pay": [0, 1, 0, 1, 0],  # 2.4 and 2.6 as stored, not rounded; missing becomes `lower`
    }


def test_it_equals_ingesting_the_file_with_the_private_schema(tmp_path: Any) -> None:
    public = table(tmp_path, PUBLIC, LINES)
    directly = table(tmp_path, PRIVATE, LINES)
    assert codes(align(public, PRIVATE)) == codes(directly)


def test_columns_that_the_public_table_lacks_are_left_out(tmp_path: Any) -> None:
    schema = Schema(columns=[c for c in PUBLIC.columns if c.name != "pay"])
    aligned = align(table(tmp_path, schema, LINES), PRIVATE)
    assert [column.name for column in aligned.schema.columns] == ["sex", "age"]


@pytest.mark.parametrize(
    "column",
    [
        {"name": "sex", "type": "integer", "lower": 0, "upper": 1},
        {"name": "sex", "type": "identifier"},
        {"name": "age", "type": "categorical", "values": ["old"]},
    ],
    ids=["number for text", "identifier for text", "text for number"],
)
def test_a_column_of_another_kind_is_refused(tmp_path: Any, column: dict[str, Any]) -> None:
    other = {"name": "town", "type": "categorical", "values": ["x"]}
    schema = Schema.model_validate({"columns": [column, other]})
    with pytest.raises(SpecError, match=f"column '{column['name']}' is .* declare the public"):
        align(table(tmp_path, schema, LINES), PRIVATE)


def test_nothing_in_common_and_no_rows_are_refused(tmp_path: Any) -> None:
    town = Schema(columns=[c for c in PUBLIC.columns if c.name == "town"])
    with pytest.raises(SpecError, match="no column with the private one"):
        align(table(tmp_path, town, LINES), PRIVATE)
    with pytest.raises(SpecError, match="no rows"):
        align(table(tmp_path, PUBLIC, LINES[:1]), PRIVATE)
