"""Households of the ACS and the people in them, with chosen columns of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.acs import DERIVED, FOLDER, category, declared_columns, encode
from benchmarks.data import find, one_chunk
from scrim.spec.two_level import TwoLevelSchema
from synth.table import Chunk, Table
from synth.table.linking import link, starts_of_groups

KEY = "SERIALNO"
HOUSING_UNIT = "1"
"""The code of TYPEHUGQ; the others are people in institutions and other group quarters."""

BINS: dict[str, dict[str, Any]] = {
    "RMSP": {"width": 1},
    "BDSP": {"width": 1},
    "AGEP": {"width": 10},
    "HINCP": {
        "edges": [
            *(-12_200, 10_000, 25_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000),
            *(500_000, 2_811_900),
        ]
    },
}
"""Bins of the numeric columns."""


@dataclass(frozen=True)
class Households:
    """Households and the people in them, linked."""

    schema: TwoLevelSchema
    rows: Chunk
    """One row per person; the rows of a household are adjacent."""

    @property
    def table(self) -> Table:
        """The linked rows."""
        return Table(self.schema.linked, [self.rows])

    @property
    def groups(self) -> int:
        """Number of households."""
        return len(starts_of_groups(self.rows[self.schema.linked.key]))

    @property
    def individuals(self) -> int:
        """Number of people."""
        return len(self.rows[self.schema.linked.key])


@dataclass(frozen=True)
class HouseholdColumns:
    """Some columns of households and of people, and how many people a household may have."""

    of_households: Sequence[str]
    of_persons: Sequence[str]
    largest: int

    def schema(self) -> TwoLevelSchema:
        """The schema, with codes and bounds that cover every state."""
        declared = declared_columns()
        # In occupied units no question about the household is blank: blanks belong to other units.
        asked = {name: {**c, "nullable": False} for name, c in declared["households"].items()}
        return TwoLevelSchema.model_validate(
            {
                "groups": {
                    "key": KEY,
                    "columns": [_column(name, asked) for name in self.of_households],
                },
                "individuals": {
                    "group_key": KEY,
                    "columns": [_column(name, declared["persons"]) for name in self.of_persons],
                },
                "max_group_size": self.largest,
            }
        )

    def read(self, state: str) -> Households:
        """Read the households of a state that have at least one person and not too many."""
        schema = self.schema()
        units = _cells(f"households_{state}", [KEY, "TYPEHUGQ", "NP"], self.of_households)
        is_chosen = units["NP"].astype(int).between(1, self.largest)
        households = units[is_chosen & (units["TYPEHUGQ"] == HOUSING_UNIT)]
        persons = _cells(f"persons_{state}", [KEY], self.of_persons)
        members = persons[persons[KEY].isin(households[KEY])]
        groups = one_chunk(encode(households, schema.table("groups")))
        individuals = one_chunk(encode(members, schema.table("individuals")))
        return Households(schema, link(groups, individuals, schema))


def _column(name: str, declared: dict[str, Any]) -> dict[str, Any]:
    if name not in BINS:
        return category(name, declared)
    return {
        "name": name,
        "type": "integer",
        "lower": declared[name]["min"],
        "upper": declared[name]["max"],
        "nullable": declared[name]["nullable"],
        "bins": BINS[name],
    }


def _cells(file: str, needed: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    sources = [DERIVED[name].source if name in DERIVED else name for name in names]
    path = find(f"{FOLDER}/{file}.csv.gz")
    return pd.read_csv(path, usecols=list({*needed, *sources}), dtype=str)
