"""Figure 1 and appendix B.3 of the Private-GSD paper: three prefixes on which its RAP++ fails.

A sigmoid is 1/2 at its threshold, so rows on a threshold can have zero error for the gradients while
the query counts all or none of them.
"""

import numpy as np

from benchmarks.comparison.grid import keep_known
from benchmarks.comparison.job import REPLACE_ONE
from benchmarks.comparison.summary import Estimate
from benchmarks.comparison.tables import Figures
from benchmarks.data import DataSet
from benchmarks.mixed.findings import Case, Findings, Found, Study, measure_cases
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.queries import compile_workload
from synth.run import run
from synth.table import Table

ABOUT = """\
A column of numbers from 0 to 1, 30,000 rows, and the prefixes below 0.49, 0.50 and 0.51, all of them
measured, at epsilon 1: figure 1 of the paper, where every row is 0.5, and the example of its appendix
B.3, where half of the rows are 0 and half are 1. There its RAP++ ends far from the truth. The error of
each prefix, counted on 30,000 released rows."""
ROWS = 30_000
EPSILON = 1.0
THRESHOLDS = (0.49, 0.50, 0.51)
COLUMNS = {"all rows at 0.5": [0.5], "half at 0, half at 1": [0.0, 1.0]}
"""The values of each column, equally often."""
PARAMETERS: dict[str, dict[str, object]] = {
    "private_gsd": {"mode": "one_shot"},
    "rap_plus_plus": {"rounds": 1, "per_round": len(THRESHOLDS)},
}


def measure(findings: Findings, *, runs: int, again: bool = False) -> None:
    """Run both mechanisms on both columns."""
    cases = [
        {"data": column, "mechanism": mechanism, "run": number}
        for mechanism in keep_known(PARAMETERS)
        for number in range(runs)
        for column in COLUMNS
    ]
    measure_cases(findings, cases, _measure, again=again)


def _measure(case: Case) -> Found:
    """The error of each prefix, counted on the released rows."""
    data = _data(np.resize(COLUMNS[case["data"]], ROWS))
    release = _release(case["mechanism"])
    done = run(
        release,
        data.table,
        protection=REPLACE_ONE,
        delta=1 / ROWS**2,
        seed=case["run"],
    )
    assert done.rows is not None
    queries = compile_workload(release.workload, data.schema)
    counted = queries.count(Table(data.schema, [done.rows])) - queries.count(data.table)
    return {"errors": (np.abs(counted) / ROWS).tolist()}


def _data(column: np.ndarray) -> DataSet:
    declared = {"name": "x", "type": "real", "lower": 0.0, "upper": 1.0, "nullable": False}
    schema = Schema.model_validate({"columns": [declared]})
    return DataSet(schema, Table(schema, [{"x": column}]), ROWS)


def _release(mechanism: str) -> ReleaseSpec:
    return ReleaseSpec.model_validate(
        {
            "workload": [{"type": "ranges", "queries": [{"x": [0.0, t]} for t in THRESHOLDS]}],
            "mechanism": {"name": mechanism, **PARAMETERS[mechanism]},
            "budget": {"epsilon": EPSILON},
            "outputs": {"rows": ROWS},
        }
    )


def tables(findings: Findings) -> list[Figures]:
    """One for each column, with the error of each prefix."""
    found = findings.read()
    return [
        Figures(
            column,
            ["", *(f"below {threshold:.2f}" for threshold in THRESHOLDS), "runs"],
            [
                [mechanism, *map(Estimate.of, zip(*errors, strict=True)), len(errors)]
                for mechanism in PARAMETERS
                if (
                    errors := [
                        f["errors"]
                        for case, f in found
                        if case["data"] == column and case["mechanism"] == mechanism
                    ]
                )
            ],
        )
        for column in COLUMNS
        if any(case["data"] == column for case, _ in found)
    ]


STUDY = Study("figure-1", "Three prefixes on one column", ABOUT, tables)
