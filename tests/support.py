"""Small tables and jobs that many tests build."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.table import Table

ADD_REMOVE = Protection()
REPLACE_ONE = Protection(relation="replace_one")
PROTECTIONS = (
    ADD_REMOVE,
    REPLACE_ONE,
    Protection(unit="person", max_rows_per_person=2),
    Protection(unit="person", max_rows_per_person=2, relation="replace_one"),
    Protection(unit="household", max_household_size=3),
    Protection(unit="household", max_household_size=3, relation="replace_one"),
)


def coded_schema(sizes: Mapping[str, int]) -> Schema:
    """Columns of whole numbers 0..size-1, one code each."""
    return Schema.model_validate(
        {
            "columns": [
                {
                    "name": name,
                    "type": "integer",
                    "lower": 0,
                    "upper": size - 1,
                    "bins": {"width": 1},
                    "nullable": False,
                }
                for name, size in sizes.items()
            ]
        }
    )


def coded_table(schema: Schema, rows: Sequence[Sequence[int]], *, chunk_rows: int = 1000) -> Table:
    """A table of coded rows."""
    names = [column.name for column in schema.attributes]
    matrix = np.asarray(rows, dtype=np.uint8).reshape(-1, len(names))
    parts = [matrix[i : i + chunk_rows] for i in range(0, len(matrix), chunk_rows)]
    return Table(schema, [{n: part[:, j].copy() for j, n in enumerate(names)} for part in parts])


def random_rows(sizes: Mapping[str, int], rows: int, seed: int = 0) -> list[list[int]]:
    """Rows with dependence between neighbouring columns."""
    rng = np.random.default_rng(seed)
    columns: list[np.ndarray[Any, Any]] = []
    for size in sizes.values():
        fresh = rng.integers(0, size, rows)
        copied = columns[-1] % size if columns else fresh
        columns.append(np.where(rng.random(rows) < 0.6, copied, fresh))
    return np.stack(columns, axis=1).tolist() if rows else []


def public_table(schema: Schema) -> Table:
    """Public rows, spread evenly, so that hardly any combination of a small domain is missing."""
    rng = np.random.default_rng(7)
    codes = np.stack([rng.integers(column.size, size=300) for column in schema.attributes], axis=1)
    return coded_table(schema, codes.tolist())


def release(mechanism: dict[str, Any], **changes: Any) -> ReleaseSpec:
    """A release of all two-way marginals, with changes."""
    body: dict[str, Any] = {
        "workload": [{"type": "marginals", "k": 2}],
        "mechanism": mechanism,
        "budget": {"rho": 0.5},
    }
    if mechanism["name"] != "gaussian":
        body["outputs"] = {"rows": 50}
    return ReleaseSpec.model_validate(body | changes)


def domain_of(schema: Schema) -> Domain:
    """The schema's discrete domain."""
    return Domain.of(schema)
