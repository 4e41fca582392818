"""Columns of the ACS, and sets of them after the tasks of folktables that the Private-GSD paper uses.

Codes and bounds come from the public schema.json, which covers all states, and from the definition of
a set; never from the rows. docs/data.md compares the sets with those of the paper.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data import DataSet, acs_columns, find, read
from scrim.spec.schema import Schema
from synth.table import Chunk, Table, read_csv

FOLDER = "acs-pums-2024"
TREE_LEAVES = 32
"""Leaves of a binary tree of five levels."""


@dataclass(frozen=True)
class Classes:
    """A column whose categories are classes of another column's numbers."""

    source: str
    first: Sequence[tuple[str, int]]
    """The smallest number of each class, in order; a class may occur more than once."""
    blank: str | None = None
    """The class of blank cells; None: they are missing."""

    @property
    def names(self) -> list[str]:
        """Every class once."""
        named = [name for name, _ in self.first]
        return list(dict.fromkeys([*named, *([] if self.blank is None else [self.blank])]))

    def of(self, numbers: pd.Series) -> pd.Series:
        """The class of each number."""
        names = np.array([*(name for name, _ in self.first), self.blank], dtype=object)
        position = np.searchsorted([start for _, start in self.first], numbers, side="right") - 1
        return pd.Series(np.where(numbers.isna(), names[-1], names[position]), numbers.index)


OCCUPATIONS = {
    "management": 10,
    "business": 500,
    "finance": 800,
    "computers": 1005,
    "engineering": 1305,
    "science": 1600,
    "social service": 2001,
    "law": 2100,
    "education": 2205,
    "arts": 2600,
    "medicine": 3000,
    "health support": 3601,
    "protection": 3700,
    "food": 4000,
    "cleaning": 4200,
    "personal care": 4330,
    "sales": 4700,
    "office": 5000,
    "farming": 6005,
    "construction": 6200,
    "extraction": 6800,
    "repair": 7000,
    "production": 7700,
    "transport": 9005,
    "military": 9800,
    "unemployed": 9920,
}
"""The groups in the Census Bureau's 2018 list of occupation codes, each with its first code."""
EDUCATION = (
    *(("none", 1), ("up to grade 4", 2), ("grade 5 to 8", 8), ("grade 9", 12), ("grade 10", 13)),
    *(("grade 11", 14), ("grade 12", 15), ("some college", 18), ("associate", 20)),
    *(("bachelor", 21), ("more than bachelor", 22)),
)
"""The classes of IPUMS's EDUC, as far as the codes of SCHL distinguish them."""

DERIVED = {
    "OCCP": Classes("OCCP", tuple(OCCUPATIONS.items())),
    "MIG": Classes("MIGSP", (("in the US", 1), ("abroad", 100)), blank="same house"),
    "PINCP>50000": Classes("PINCP", (("no", -11_500), ("yes", 50_001)), blank="no"),
    "JWMNP>20": Classes("JWMNP", (("no", 1), ("yes", 21)), blank="no"),
    "ESR=1": Classes("ESR", (("yes", 1), ("no", 2)), blank="no"),
    "EMPLOYED": Classes("ESR", (("yes", 1), ("no", 3), ("yes", 4), ("no", 6)), blank="no"),
    "MARRIED": Classes("MAR", (("yes", 1), ("no", 2))),
    "AGE": Classes("AGEP", (("below 40", 0), ("40 or more", 40))),
    "HISPAN": Classes(
        "HISP", (("no", 1), ("Mexican", 2), ("Puerto Rican", 3), ("Cuban", 4), ("other", 5))
    ),
    "EDUC": Classes("SCHL", EDUCATION, blank="none"),
    "BUILDING": Classes(
        "BLD",
        (
            *(("mobile or other", 1), ("detached", 2), ("attached", 3), ("2 to 9 homes", 4)),
            *(("10 homes or more", 7), ("mobile or other", 10)),
        ),
    ),
    "TENURE": Classes("TEN", (("mortgage", 1), ("owned", 2), ("rented", 3))),
    "HINCP<30000": Classes("HINCP", (("yes", -12_200), ("no", 30_000))),
}
"""Columns derived from other columns of the file."""


@dataclass(frozen=True)
class ColumnSet:
    """Some columns of some persons."""

    categorical: Sequence[str]
    numeric: Sequence[str]
    kept: Mapping[str, tuple[int, int]]
    """Only persons whose numbers lie between these bounds are kept."""

    @property
    def sources(self) -> list[str]:
        """The columns of the file that the set needs."""
        derived = [DERIVED[name].source for name in self.categorical if name in DERIVED]
        stored = [name for name in self.categorical if name not in DERIVED]
        return list(dict.fromkeys([*stored, *derived, *self.numeric, *self.kept]))


COLUMN_SETS = {
    "mobility": ColumnSet(
        categorical=(
            *("MIL", "DREM", "CIT", "DIS", "COW", "MAR", "SCHL", "MIG", "NATIVITY", "DEAR"),
            *("DEYE", "SEX", "ESR", "RAC1P"),
        ),
        numeric=("JWMNP", "PINCP", "WKHP", "AGEP"),
        kept={"AGEP": (19, 34)},
    ),
    "employment": ColumnSet(
        categorical=(
            *("SCHL", "MAR", "DIS", "CIT", "MIG", "MIL", "NATIVITY", "DEAR", "DEYE", "DREM"),
            *("SEX", "RAC1P", "ESR=1"),
        ),
        numeric=("AGEP",),
        kept={},
    ),
    "income": ColumnSet(
        categorical=("COW", "OCCP", "SCHL", "MAR", "SEX", "PINCP>50000", "RAC1P", "CIT"),
        numeric=("WKHP", "AGEP"),
        kept={"AGEP": (17, 96), "PINCP": (101, 1_945_000), "WKHP": (1, 99)},
    ),
    "coverage": ColumnSet(
        categorical=(
            *("MIL", "FER", "DREM", "CIT", "DIS", "MAR", "SCHL", "PUBCOV", "MIG", "NATIVITY"),
            *("DEYE", "SEX", "ESR", "RAC1P", "DEAR"),
        ),
        numeric=("PINCP", "AGEP"),
        kept={"AGEP": (15, 64), "PINCP": (-11_500, 30_000)},
    ),
    "travel": ColumnSet(
        categorical=(
            *("JWMNP>20", "CIT", "DIS", "OCCP", "SCHL", "JWTRNS", "MAR", "MIG", "SEX", "RAC1P"),
        ),
        numeric=("AGEP", "POVPIP"),
        kept={"AGEP": (17, 96), "ESR": (1, 1)},
    ),
    "multitask": ColumnSet(
        categorical=(
            *("OCCP", "MIG", "CIT", "FER", "DEAR", "DEYE", "ESR", "JWTRNS", "JWMNP>20", "DREM"),
            *("MIL", "SCHL", "MAR", "NATIVITY", "RAC1P", "DIS", "COW", "PUBCOV", "SEX"),
            "PINCP>50000",
        ),
        numeric=("WAGP", "POVPIP", "WKHP", "AGEP"),
        kept={"AGEP": (17, 89)},
    ),
}
"""The sets by name; the last one has the columns of all tasks, for training on several of them."""


def declared_columns() -> dict[str, Any]:
    """By table and name: codes or bounds in any state, and whether cells may be blank."""
    declared: dict[str, Any] = json.loads(find(f"{FOLDER}/schema.json").read_text())
    return declared


def schema_of(column_set: ColumnSet, *, bins: int | None = None) -> Schema:
    """The schema of a set; numbers have `bins` bins of equal width, if given."""
    declared = declared_columns()["persons"]
    columns = [
        *(category(name, declared) for name in column_set.categorical),
        *(_number(name, declared, column_set) for name in column_set.numeric),
    ]
    if bins is not None:
        for column in columns[len(column_set.categorical) :]:
            column["bins"] = {"count": bins}
    return Schema.model_validate({"columns": columns})


def category(name: str, declared: dict[str, Any]) -> dict[str, Any]:
    """A column of codes, or of classes that are made of another one."""
    if name not in DERIVED:
        return _codes(name, declared[name])
    classes = DERIVED[name]
    nullable = classes.blank is None and declared[classes.source]["nullable"]
    return _complete(name, classes.names, nullable=nullable)


def _codes(name: str, declared: dict[str, Any]) -> dict[str, Any]:
    """A column of the codes that are declared for it."""
    values = [str(code) for code in declared["codes"]]
    return _complete(name, values, nullable=declared["nullable"])


def _complete(name: str, values: list[str], *, nullable: bool) -> dict[str, Any]:
    # The list is complete, so no category is added for values outside it.
    return {
        "name": name,
        "type": "categorical",
        "values": values,
        "other": values[-1],
        "nullable": nullable,
    }


def _number(name: str, declared: dict[str, Any], column_set: ColumnSet) -> dict[str, Any]:
    lower, upper = column_set.kept.get(name, (declared[name]["min"], declared[name]["max"]))
    nullable = declared[name]["nullable"] and name not in column_set.kept
    whole = {"name": name, "lower": lower, "upper": upper, "nullable": nullable}
    # A range with fewer whole numbers than leaves cannot be halved that often.
    if upper - lower + 1 < TREE_LEAVES:
        return {**whole, "type": "real", "lower": float(lower), "upper": float(upper)}
    return {**whole, "type": "integer"}


def persons(state: str, column_set: ColumnSet, *, bins: int | None = None) -> DataSet:
    """The persons of a state that belong to the set."""
    schema = schema_of(column_set, bins=bins)
    path = find(f"{FOLDER}/persons_{state}.csv.gz")
    cells = pd.read_csv(path, usecols=column_set.sources, dtype=str)
    for name, (lower, upper) in column_set.kept.items():
        cells = cells[cells[name].astype(float).between(lower, upper)]
    return DataSet(schema, Table(schema, encode(cells, schema)), len(cells))


def encode(cells: pd.DataFrame, schema: Schema) -> list[Chunk]:
    """Encode the cells of a file, and the classes derived from them, by the schema."""
    names = [column.name for column in schema.columns]
    derived = {
        name: DERIVED[name].of(cells[DERIVED[name].source].astype(float))
        for name in names
        if name in DERIVED
    }
    content = cells.assign(**derived)[names]
    return list(read_csv(BytesIO(content.to_csv(index=False).encode()), schema))


WIDE_CODES = ("FOD1P", "INDP", "OCCP", "MIGSP")
"""Columns of persons with 97 to 530 codes: field of degree, industry, occupation, last residence."""
WIDE_NUMBERS = ("AGEP", "WKHP")
"""Numbers that are not grouped: a bin for each age and each number of weekly hours."""


def wide_persons(state: str) -> DataSet:
    """The 28 columns of `acs_persons`, two of them with finer bins, and four with many codes."""
    declared = declared_columns()["persons"]
    columns = acs_columns()
    for column in columns:
        if column["name"] in WIDE_NUMBERS:
            column["bins"] = {"width": 1}
    schema = {"columns": [*columns, *(_codes(name, declared[name]) for name in WIDE_CODES)]}
    return read(f"{FOLDER}/persons_{state}.csv.gz", Schema.model_validate(schema))
