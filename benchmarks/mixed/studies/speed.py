"""Speed of the genetic search, and how the time of a generation grows."""

import time
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from benchmarks.acs import COLUMN_SETS, persons
from benchmarks.comparison.tables import Figures
from benchmarks.data import ADULT_COLUMNS, DataSet, adult
from benchmarks.mixed.findings import Case, Findings, Found, Study, measure_cases
from benchmarks.mixed.sets import SEED
from benchmarks.mixed.studies.plain import seconds_per_candidate
from scrim.spec.schema import Schema
from scrim.spec.workload import Halfspaces, Marginals, Prefixes, WorkloadItem
from synth.genetic import GeneticSearch
from synth.queries import compile_workload
from synth.table import Table

ABOUT = """\
The search gets exact answers. Unless stated otherwise, each generation has 50 mutations and 50 crossovers
of 2,000 rows. The figures leave out the time before the first generation. The plain way counts all queries
on all rows of every candidate, with the counter that also counts true rows."""
STATE = "VT"
"""A small state: only the synthetic rows decide how long a generation takes."""
CANDIDATES, SEARCHED_ROWS = 100, 2_000
GENERATIONS = 10_000


class SearchProblem:
    """The queries of a search, and its number of rows."""

    def __init__(self, data: DataSet, item: WorkloadItem, rows: int = SEARCHED_ROWS) -> None:
        self.data = data
        self.rows = rows
        self.queries = compile_workload([item], data.schema)
        self._true = self.queries.count(data.table) / data.rows

    def seconds_per_generation(self, repeats: int) -> float:
        """Seconds of a generation in the fastest of some searches."""
        self._time(generations=1)  # compiles
        return min(self._time(generations=GENERATIONS) for _ in range(repeats))

    def _time(self, *, generations: int) -> float:
        """Time a search from its first report of progress, when everything is ready."""
        search = GeneticSearch(
            self.data.schema,
            rows=self.rows,
            mutations=CANDIDATES // 2,
            crossovers=CANDIDATES // 2,
            elites=2,
            generations=generations,
            seed=SEED,
        )
        noise = np.full(self.queries.size, 1 / self.data.rows)
        reported: list[float] = []
        finished = search.fit(
            self.queries,
            self._true,
            noise,
            lambda done, total: reported.append(time.perf_counter()),
        )
        return (reported[-1] - reported[0]) / finished


# What is measured


def _marginals_of_adult(count: int) -> Marginals:
    pairs = list(combinations(ADULT_COLUMNS, 2))[:count]
    return Marginals(type="marginals", attributes=[list(pair) for pair in pairs])


def _pair_of_columns(categories: int) -> DataSet:
    """Two random columns of `size` categories."""
    values = [str(code) for code in range(categories)]
    column = {"type": "categorical", "values": values, "other": values[-1], "nullable": False}
    schema = Schema.model_validate({"columns": [{"name": name, **column} for name in "ab"]})
    rng = np.random.default_rng(SEED)
    dtype = np.min_scalar_type(categories - 1)
    chunk = {name: rng.integers(categories, size=SEARCHED_ROWS).astype(dtype) for name in "ab"}
    return DataSet(schema, Table(schema, [chunk]), SEARCHED_ROWS)


def _mobility(item: WorkloadItem) -> SearchProblem:
    return SearchProblem(persons(STATE, COLUMN_SETS["mobility"]), item)


PLAIN: dict[str, Callable[[], SearchProblem]] = {
    "78 two-way marginals of ADULT": lambda: SearchProblem(adult(), _marginals_of_adult(78)),
    "5,000 prefixes of mobility": lambda: _mobility(
        Prefixes(type="prefixes", count=5_000, seed=SEED)
    ),
    "1,000 halfspaces of mobility": lambda: _mobility(
        Halfspaces(type="halfspaces", count=1_000, seed=SEED)
    ),
}
GROWING: dict[str, tuple[Sequence[int], Callable[[int], SearchProblem]]] = {
    "two-way marginals of ADULT": (
        (10, 20, 40, 78),
        lambda count: SearchProblem(adult(), _marginals_of_adult(count)),
    ),
    "cells of one marginal": (
        (100, 2_500, 10_000, 250_000, 1_000_000),
        lambda cells: SearchProblem(
            _pair_of_columns(round(cells**0.5)), Marginals(type="marginals", k=2)
        ),
    ),
    "rows, 78 two-way marginals of ADULT": (
        (500, 2_000, 8_000, 32_000),
        lambda rows: SearchProblem(adult(), _marginals_of_adult(78), rows),
    ),
}


def measure(findings: Findings, *, runs: int, again: bool = False) -> None:
    """The fastest of some runs of every case."""
    cases: list[Case] = [
        *({"beside": name} for name in PLAIN),
        *({"growing": name, "to": size} for name, (sizes, _) in GROWING.items() for size in sizes),
    ]
    measure_cases(findings, cases, lambda case: _measure(case, runs), again=again)


def _measure(case: Case, repeats: int) -> Found:
    if "beside" in case:
        problem = PLAIN[case["beside"]]()
        ours = problem.seconds_per_generation(repeats) / CANDIDATES
        plain = seconds_per_candidate(problem.queries, problem.data, problem.rows, repeats=repeats)
        return {"candidates_per_second": 1 / ours, "plain_per_second": 1 / plain}
    problem = GROWING[case["growing"]][1](case["to"])
    return {"seconds": problem.seconds_per_generation(repeats)}


def tables(findings: Findings) -> list[Figures]:
    """A table that compares both ways, and one table for each quantity that grows."""
    found = findings.read()
    beside = [
        [case["beside"], f["candidates_per_second"], f["plain_per_second"], _ratio(f)]
        for case, f in found
        if "beside" in case
    ]
    header = ["", "private_gsd", "plain", "times as fast"]
    shown = [Figures("candidates scored in a second", header, beside)] if beside else []
    for name in GROWING:
        grown = [(c["to"], f["seconds"]) for c, f in found if c.get("growing") == name]
        if grown:
            header = [name, "seconds of a generation", "candidates in a second"]
            rows = [[f"{size:,}", took, CANDIDATES / took] for size, took in sorted(grown)]
            shown.append(Figures(f"time against {name}", header, rows))
    return shown


def _ratio(found: Found) -> float:
    return float(found["candidates_per_second"] / found["plain_per_second"])


STUDY = Study("speed", "Candidates scored in a second", ABOUT, tables)
