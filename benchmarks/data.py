"""Public data sets, read from the folder that SCRIM_BENCHMARK_DATA names (docs/data.md)."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrim.importers import from_mbi_domain
from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.table import Chunk, Table, read_csv

ADULT_COLUMNS = [
    *("sex", "income>50K", "race", "relationship", "marital-status", "workclass", "occupation"),
    *(
        "education-num",
        "native-country",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
        "age_10",
    ),
]
ADULT_PUBLIC_COLUMNS = [
    *("sex", "income>50K", "race", "marital-status", "occupation", "education-num", "age_10")
]
"""The seven columns of ADULT (reduced), by the names they have in ADULT."""

ACS_CODES = {
    "SEX": 2,
    "RAC1P": 9,
    "HISP": 24,
    "CIT": 5,
    "NATIVITY": 2,
    "LANX": 2,
    "ENG": 4,
    "SCHL": 24,
    "MAR": 5,
    "FER": 2,
    "ESR": 6,
    "COW": 9,
    "JWTRNS": 12,
    "HICOV": 2,
    "PRIVCOV": 2,
    "PUBCOV": 2,
    "DIS": 2,
    "DEAR": 2,
    "DEYE": 2,
    "DREM": 2,
    "DPHY": 2,
    "MIL": 4,
}
"""Columns of persons whose cells are codes from 1, and how many codes there are in any state."""
ACS_NUMBERS: dict[str, dict[str, Any]] = {
    "AGEP": {"lower": 0, "upper": 96, "bins": {"width": 10}},
    "WKHP": {"lower": 1, "upper": 99, "bins": {"width": 10}},
    "WKWN": {"lower": 1, "upper": 52, "bins": {"width": 13}},
    "JWMNP": {"lower": 1, "upper": 195, "bins": {"width": 15}},
    "POVPIP": {"lower": 0, "upper": 501, "bins": {"width": 100}},
    "PINCP": {
        "lower": -11_500,
        "upper": 1_945_000,
        "bins": {
            "edges": [-11_500, 1, 10_000, 25_000, 50_000, 75_000, 100_000, 200_000, 1_945_000]
        },
    },
}
"""Columns of persons whose cells are numbers, with the bounds in any state."""
ACS_NEVER_BLANK = {
    *("SEX", "RAC1P", "HISP", "CIT", "NATIVITY", "MAR", "HICOV", "PRIVCOV", "PUBCOV", "DIS"),
    *("DEAR", "DEYE", "AGEP"),
}
"""Columns without blank cells. In others, a blank means that the question does not apply."""


@dataclass(frozen=True)
class DataSet:
    """A public table with its schema."""

    schema: Schema
    table: Table
    rows: int

    @property
    def domain(self) -> Domain:
        """The discrete domain of all its columns."""
        return Domain.of(self.schema)

    @property
    def codes(self) -> dict[str, NDArray[np.int64]]:
        """All rows in memory, as codes."""
        chunks = list(self.table.codes(self.domain.names))
        return {
            name: np.concatenate([chunk[name] for chunk in chunks]).astype(np.int64)
            for name in self.domain.names
        }

    def keep_rows(self, wanted: NDArray[np.bool_]) -> "DataSet":
        """The rows that are marked."""
        rows = one_chunk(list(self.table.chunks()))
        kept = {name: column[wanted] for name, column in rows.items()}
        return DataSet(self.schema, Table(self.schema, [kept]), int(wanted.sum()))

    def keep_columns(self, names: Sequence[str]) -> "DataSet":
        """The named columns, in the schema's order."""
        schema = Schema(columns=[column for column in self.schema.columns if column.name in names])
        chunks = [{c.name: chunk[c.name] for c in schema.columns} for chunk in self.table.chunks()]
        return DataSet(schema, Table(schema, chunks), self.rows)

    def split(self, share: float, seed: int) -> tuple["DataSet", "DataSet"]:
        """The rows at random in two parts; the second has about that share of them."""
        is_second = np.random.default_rng(seed).random(self.rows) < share
        return self.keep_rows(~is_second), self.keep_rows(is_second)


def one_chunk(chunks: Sequence[Chunk]) -> Chunk:
    """All rows of some chunks in one chunk."""
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def find(name: str) -> Path:
    """A file of the data folder."""
    path = Path(os.environ.get("SCRIM_BENCHMARK_DATA", "../shared/data")) / name
    if not path.exists():
        raise SystemExit(f"{path} is missing; docs/data.md says where to get it (DATA=...)")
    return path


def read(csv: str, schema: Schema) -> DataSet:
    """A table of that schema, in memory."""
    chunks = list(read_csv(find(csv), schema))
    return DataSet(schema, Table(schema, chunks), sum(len(next(iter(c.values()))) for c in chunks))


def load(csv: str, domain: str, columns: list[str] | None = None) -> DataSet:
    """A table of integer codes and its domain file."""
    sizes = json.loads(find(domain).read_text())
    return read(csv, from_mbi_domain({name: sizes[name] for name in columns or sizes}))


def adult() -> DataSet:
    """ADULT as the GEM and PMW-Pub papers use it: 13 columns."""
    return load("adult/adult_pmwpub.csv", "adult/adult_pmwpub-domain.json", ADULT_COLUMNS)


def adult_reduced() -> DataSet:
    """ADULT reduced to 7 columns, 336,000 cells."""
    return load("adult-reduced/adult-reduced.csv", "adult-reduced/adult-reduced-domain.json")


def adult_fine() -> DataSet:
    """ADULT with 14 columns and finer bins: the ADULT* of the GEM paper."""
    return load("adult/adult_orig14.csv", "adult/adult_orig14-domain.json")


def adult_split() -> tuple[DataSet, DataSet]:
    """ADULT, private and public, as the PMW-Pub and GEM papers divide it."""
    data = adult()
    private = np.random.RandomState(0).binomial(1, 0.9, size=data.rows).astype(bool)
    return data.keep_rows(private), data.keep_rows(~private)


def loans() -> DataSet:
    """LOANS: 48 columns."""
    return load("loans/loans.csv.gz", "loans/loans-domain.json")


def acs_persons(state: str) -> DataSet:
    """Persons of one state in the ACS of 2024: 22 columns of codes and 6 of binned numbers."""
    schema = Schema.model_validate({"columns": acs_columns()})
    return read(f"acs-pums-2024/persons_{state}.csv.gz", schema)


def acs_columns() -> list[dict[str, Any]]:
    """The columns of `acs_persons`, as a schema declares them."""
    columns: list[dict[str, Any]] = [
        *({"name": name, **_categories(size)} for name, size in ACS_CODES.items()),
        *({"name": name, "type": "integer", **number} for name, number in ACS_NUMBERS.items()),
    ]
    for column in columns:
        column["nullable"] = column["name"] not in ACS_NEVER_BLANK
    return columns


def _categories(size: int) -> dict[str, Any]:
    values = [str(code) for code in range(1, size + 1)]
    # The list is complete, so no category is added for values outside it.
    return {"type": "categorical", "values": values, "other": values[-1]}
