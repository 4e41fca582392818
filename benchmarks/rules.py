"""`make bench-rules`: errors of all pairs of ADULT with rules and without; [runs] [mechanism ...].

Both are compared with the table as it is, before rows that break a rule are mapped. Released rows that
break a rule are counted as well.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.data import DataSet, read
from benchmarks.report import print_table
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.queries import compile_workload
from synth.rules.row_rules import RowRules
from synth.run import run
from synth.table import Table

RUNS = 3
EPSILON = 1.0
MECHANISMS = ("generative_network", "aim", "gem", "private_gsd")
EDUCATION = [
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad"),
    *(
        "Some-college",
        "Assoc-voc",
        "Assoc-acdm",
        "Bachelors",
        "Masters",
        "Prof-school",
        "Doctorate",
    ),
]
"""In the order of education-num, from 1."""
VALUES = {
    "workclass": [
        *("Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov"),
        *("Without-pay", "Never-worked", "?"),
    ],
    "education": EDUCATION,
    "marital-status": [
        *("Never-married", "Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent"),
        *("Divorced", "Separated", "Widowed"),
    ],
    "occupation": [
        *("Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing"),
        *("Handlers-cleaners", "Machine-op-inspct", "Other-service", "Priv-house-serv"),
        *("Prof-specialty", "Protective-serv", "Sales", "Tech-support", "Transport-moving", "?"),
    ],
    "relationship": [
        *("Husband", "Wife", "Own-child", "Other-relative", "Not-in-family", "Unmarried"),
    ],
    "sex": ["Female", "Male"],
}
NUMBERS = {"age": (17, 90, 8), "education-num": (1, 16, 1), "hours-per-week": (1, 99, 10)}
"""Lower, upper, and the width of bins."""
RULES: list[dict[str, Any]] = [
    {"when": {"relationship": ["Husband"]}, "then": {"sex": ["Male"]}},
    {"when": {"relationship": ["Wife"]}, "then": {"sex": ["Female"]}},
    {
        "when": {"relationship": ["Husband", "Wife"]},
        "then": {"marital-status": ["Married-civ-spouse", "Married-AF-spouse"]},
    },
    {"when": {"age": {"max": 17}}, "then": {"marital-status": ["Never-married"]}},
    {"when": {"workclass": ["Never-worked", "?"]}, "then": {"occupation": ["?"]}},
    *(
        {"when": {"education": [name]}, "then": {"education-num": {"min": n, "max": n}}}
        for n, name in enumerate(EDUCATION, start=1)
    ),
]
"""Relations that hold in ADULT but for 5 of 32,561 rows."""


def adult_raw() -> DataSet:
    """Nine columns of raw ADULT, numbers in bins."""
    columns: list[dict[str, Any]] = [
        {"name": n, "type": "categorical", "values": v, "other": v[-1], "nullable": False}
        for n, v in VALUES.items()
    ]
    for name, (lower, upper, width) in NUMBERS.items():
        bounds = {"lower": lower, "upper": upper, "bins": {"width": width}}
        columns.append({"name": name, "type": "integer", "nullable": False, **bounds})
    return read("adult/raw_train.csv.gz", Schema.model_validate({"columns": columns}, strict=False))


def release_of(mechanism: str, rows: int) -> ReleaseSpec:
    """Rows for all pairs."""
    return ReleaseSpec.model_validate(
        {
            "workload": [{"type": "marginals", "k": 2}],
            "mechanism": {"name": mechanism},
            "budget": {"epsilon": EPSILON},
            "outputs": {"rows": rows},
            "expected_rows": rows,
        }
    )


def figures(mechanism: str, data: DataSet, table: Table, *, seed: int) -> list[float]:
    """The figures of one run, in the order of the printed columns."""
    spec = release_of(mechanism, data.rows)
    queries = compile_workload(spec.workload, data.schema)
    started = time.process_time()
    done = run(spec, table, protection=Protection(), delta=1e-9, seed=seed)
    seconds = time.process_time() - started
    assert done.rows is not None and done.answers is not None
    true = queries.count(data.table) / data.rows
    released = queries.count(Table(data.schema, [done.rows])) / data.rows
    errors = np.abs(released - true)
    return [
        float(np.mean([part.sum() / 2 for part in queries.split(errors)])),
        float(errors.mean()),
        float(errors.max()),
        float(np.abs(done.answers.fractions - true).mean()),
        float(RowRules(with_rules(data.schema)).broken(done.rows).sum()),
        seconds,
    ]


def with_rules(schema: Schema) -> Schema:
    """The schema with the rules of ADULT."""
    declared = schema.model_dump() | {"rules": RULES}
    return Schema.model_validate(declared, strict=False)


def main(arguments: Sequence[str]) -> None:
    """Print one line for each mechanism, without rules and with them."""
    runs = int(arguments[0]) if arguments else RUNS
    data = adult_raw()
    tables = {
        "without": data.table,
        "with rules": Table(with_rules(data.schema), list(data.table.chunks())),
    }
    lines = []
    for mechanism in arguments[1:] or MECHANISMS:
        for name, table in tables.items():
            found = [figures(mechanism, data, table, seed=seed) for seed in range(runs)]
            means = [float(figure) for figure in np.mean(found, axis=0)]
            lines.append([f"{mechanism}, {name}", *(f"{figure:.4g}" for figure in means)])
            print(*lines[-1], flush=True)
    print_table(
        f"Pairs of nine columns of ADULT at epsilon {EPSILON:g}, mean of {runs} runs",
        [
            "mechanism",
            "mean TV",
            "mean error",
            "max error",
            "mean, answers",
            "broken rows",
            "cpu s",
        ],
        lines,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
