"""Figure 2 of the Private-GSD paper: what crossovers add to mutations.

The data is artificial, sparse and of high cardinality, so a random value is rarely useful, while the
value of another row often is.
"""

import time
from pathlib import Path

import altair as alt
import numpy as np

from benchmarks.comparison.plots import styled
from benchmarks.comparison.tables import Figures
from benchmarks.data import DataSet
from benchmarks.mixed.findings import Case, Findings, Found, Study, measure_cases
from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Schema
from scrim.spec.workload import Ranges
from synth.genetic import GeneticSearch
from synth.queries import QuerySet, compile_workload
from synth.table import Table, store_numbers

ABOUT = """\
This follows figure 2 of the paper. The data has 2,000 rows and five columns of 1,000 categories, of which
20 occur. The search starts from uniform rows and gets the exact count of every category. The tables show
the mean error of all 5,000 counts, as a fraction of the rows, and the seconds."""
ROWS, COLUMNS, CATEGORIES, PRESENT = 2_000, 5, 1_000, 20
GENERATIONS = (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000)
POPULATIONS = {"200 mutations": (200, 0), "100 mutations, 100 crossovers": (100, 100)}


def measure(findings: Findings, *, runs: int, again: bool = False) -> None:
    """Let both populations evolve."""
    cases = [{"population": each, "run": number} for number in range(runs) for each in POPULATIONS]
    measure_cases(findings, cases, _measure, again=again)


def sparse_data() -> DataSet:
    """Rows in which every column has few of its categories, each about equally often."""
    rng = np.random.default_rng(0)
    values = [str(code) for code in range(CATEGORIES)]
    column = {"type": "categorical", "values": values, "other": values[-1], "nullable": False}
    names = [f"column {i}" for i in range(COLUMNS)]
    schema = Schema.model_validate({"columns": [{"name": name, **column} for name in names]})
    dtype = np.min_scalar_type(CATEGORIES - 1)
    chunk = {
        name: rng.choice(rng.choice(CATEGORIES, PRESENT, replace=False), ROWS).astype(dtype)
        for name in names
    }
    return DataSet(schema, Table(schema, [chunk]), ROWS)


def every_category(schema: Schema) -> QuerySet:
    """One query per category. As marginals, they would be the starting point of the search."""
    queries: list[dict[str, list[float | str] | str | None]] = [
        {column.name: value}
        for column in schema.attributes
        if isinstance(column, LabelledColumn)
        for value in column.labels
    ]
    return compile_workload([Ranges(type="ranges", queries=queries)], schema)


def _measure(case: Case) -> Found:
    """The mean error and the seconds at each number of generations."""
    data = sparse_data()
    queries = every_category(data.schema)
    true = queries.count(data.table) / data.rows
    noise = np.full(queries.size, 1 / ROWS)
    _search(case, data.schema, generations=1).fit(queries, true, noise)  # compiles
    search = _search(case, data.schema, generations=GENERATIONS[0])
    finished, took = 0, 0.0
    found: dict[str, list[float]] = {"mean_errors": [], "seconds": []}
    for generations in GENERATIONS:
        while finished < generations:
            start = time.perf_counter()
            finished += search.fit(queries, true, noise)
            took += time.perf_counter() - start
        rows = Table(data.schema, [store_numbers(data.schema, search.rows)])
        error = np.abs(queries.count(rows) / ROWS - true)
        found["mean_errors"].append(float(error.mean()))
        found["seconds"].append(took)
    return found


def _search(case: Case, schema: Schema, *, generations: int) -> GeneticSearch:
    mutations, crossovers = POPULATIONS[case["population"]]
    return GeneticSearch(
        schema,
        rows=ROWS,
        mutations=mutations,
        crossovers=crossovers,
        elites=2,
        generations=generations,
        seed=case["run"],
    )


def tables(findings: Findings) -> list[Figures]:
    """Mean error and seconds, a column for each number of generations."""
    found = findings.read()
    if not found:
        return []
    return [
        Figures(
            f"{name} after each number of generations",
            ["", *(f"{generations:,}" for generations in GENERATIONS)],
            [
                [population, *map(float, np.mean(values, axis=0))]
                for population in POPULATIONS
                if (values := [f[field] for c, f in found if c["population"] == population])
            ],
        )
        for name, field in (("mean error", "mean_errors"), ("seconds", "seconds"))
    ]


def save_plot(findings: Findings, path: Path) -> None:
    """Mean error against generations, a line for each population."""
    points = [
        {"population": case["population"], "generations": generations, "error": error}
        for case, found in findings.read()
        for generations, error in zip(GENERATIONS, found["mean_errors"], strict=True)
        if error > 0  # a perfect fit has no place on a logarithmic axis
    ]
    chart = alt.Chart(alt.Data(values=points), title="With and without crossovers").encode(
        x=alt.X("generations:Q", title="generations")
        .scale(type="log", nice=False, padding=12)
        .axis(values=GENERATIONS, grid=False),
        y=alt.Y("mean(error):Q", title="mean error").scale(type="log").axis(format="~g"),
        color=alt.Color("population:N", title=None).legend(labelLimit=0),
    )
    lines = alt.layer(chart.mark_line(), chart.mark_point(filled=True))
    styled(lines.properties(width=480, height=260)).save(path)


STUDY = Study("crossover", "With and without crossovers", ABOUT, tables, save_plot)
