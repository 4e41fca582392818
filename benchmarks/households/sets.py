"""What is compared: households of New York, their workloads, and the mechanisms.

Paper: Liu, Wu (2022), Towards Differentially Private Query Release for Hierarchical Data, section 5
and appendix A.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from benchmarks.comparison.problem import Comparison
from benchmarks.households.data import HouseholdColumns, Households
from scrim.spec.population import Protection
from scrim.spec.workload import Hierarchical, WorkloadItem

STATE = "NY"
ORDER = 3
COUNT, SEED = 128, 0
"""Sets of columns that are asked about, for each number of columns of households among them."""
TIMED_ROUNDS = 50

Unit = Literal["household", "person"]
Relation = Literal["replace_one", "add_remove"]


@dataclass(frozen=True)
class TwoLevelProblem:
    """Private households, their workload, and who is protected."""

    private: Households
    workload: Sequence[WorkloadItem]
    protection: Protection

    @property
    def delta(self) -> float:
        """As in the paper; the size of this data is public."""
        return 1 / self.private.groups**2


@dataclass(frozen=True)
class HouseholdSet:
    """Columns, the queries about them, and the mechanisms that can answer these."""

    title: str
    columns: HouseholdColumns
    workload: Hierarchical
    mechanisms: tuple[str, ...]


SETS = {
    "full": HouseholdSet(
        "households of up to 5, 10 and 11 columns",
        HouseholdColumns(
            ("TEN", "RMSP", "YRBLT", "MULTG", "BDSP", "BLD", "HHT", "HHL", "MV", "HINCP"),
            (
                *("SEX", "MAR", "RAC1P", "HISPAN", "CIT", "EDUC", "ESR", "AGEP", "LANX", "MIL"),
                "COW",
            ),
            largest=5,
        ),
        Hierarchical(type="hierarchical", k=ORDER, count=COUNT, seed=SEED),
        ("random_join", "h_gem"),
    ),
    "small": HouseholdSet(
        "households of up to 3, 4 columns and 4 of two values",
        HouseholdColumns(
            ("BUILDING", "TENURE", "MULTG", "HINCP<30000"),
            ("SEX", "AGE", "EMPLOYED", "MARRIED"),
            largest=3,
        ),
        Hierarchical(type="hierarchical", k=ORDER),
        ("random_join", "h_mwem", "h_gem"),
    ),
}


def protection_of(unit: Unit, relation: Relation, largest: int) -> Protection:
    """Whole households, or people with one row each."""
    if unit == "household":
        return Protection(unit=unit, relation=relation, max_household_size=largest)
    return Protection(unit=unit, relation=relation, max_rows_per_person=1)


def _comparison(name: str, unit: Unit, relation: Relation) -> Comparison:
    chosen = SETS[name]

    def load() -> TwoLevelProblem:
        protection = protection_of(unit, relation, chosen.columns.largest)
        return TwoLevelProblem(chosen.columns.read(STATE), [chosen.workload], protection)

    neighbours = {
        "replace_one": f"one {unit} is replaced",
        "add_remove": f"one {unit} is added or removed",
    }
    return Comparison(
        f"{name}-{unit}" + ("" if relation == "replace_one" else "-add-remove"),
        f"{name.capitalize()}: {chosen.title}; {neighbours[relation]}",
        chosen.mechanisms,
        load,
    )


RELATIONS: tuple[Relation, ...] = ("replace_one", "add_remove")
UNITS: tuple[Unit, ...] = ("person", "household")


def _in_timed_rounds(unit: Unit) -> Comparison:
    """The full set in a fixed number of rounds, to compare times between versions of the code."""
    by_default = _comparison("full", unit, "replace_one")
    return replace(
        by_default,
        name=f"{by_default.name}-{TIMED_ROUNDS}-rounds",
        title=f"{by_default.title}; {TIMED_ROUNDS} rounds of one measurement",
        mechanisms=("h_gem",),
        parameters={"h_gem": {"rounds": TIMED_ROUNDS, "per_round": 1}},
    )


COMPARISONS = (
    *(
        _comparison(name, unit, relation)
        for relation, name, unit in product(RELATIONS, SETS, UNITS)
    ),
    *(_in_timed_rounds(unit) for unit in UNITS),
)
"""All comparisons; the paper's relation comes first."""
