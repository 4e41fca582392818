"""Public data sets, read from the folder that SCRIM_BENCHMARK_DATA names (docs/data.md)."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synth.domain import Domain
from synth.spec.importers import from_mbi_domain
from synth.spec.schema import Schema
from synth.table import Table, read_csv

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


def load(csv: str, domain: str, columns: list[str] | None = None) -> DataSet:
    """A table of integer codes and its domain file."""
    folder = Path(os.environ.get("SCRIM_BENCHMARK_DATA", "../shared/data"))
    if not (folder / csv).exists():
        raise SystemExit(
            f"{folder / csv} is missing; docs/data.md says where to get it (make bench DATA=...)"
        )
    sizes = json.loads((folder / domain).read_text())
    schema = from_mbi_domain({name: sizes[name] for name in columns or sizes})
    chunks = list(read_csv(folder / csv, schema))
    return DataSet(schema, Table(schema, chunks), sum(len(next(iter(c.values()))) for c in chunks))


def adult() -> DataSet:
    """ADULT as the GEM and PMW-Pub papers use it: 13 columns."""
    return load("adult/adult_pmwpub.csv", "adult/adult_pmwpub-domain.json", ADULT_COLUMNS)


def adult_reduced() -> DataSet:
    """ADULT reduced to 7 columns, 336,000 cells."""
    return load("adult-reduced/adult-reduced.csv", "adult-reduced/adult-reduced-domain.json")
