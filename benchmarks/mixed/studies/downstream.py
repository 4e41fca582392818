"""Appendix C of the Private-GSD paper: classifiers trained on synthetic rows, tested on true ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from benchmarks.acs import COLUMN_SETS, TREE_LEAVES, persons
from benchmarks.comparison.grid import keep_known
from benchmarks.comparison.job import REPLACE_ONE
from benchmarks.comparison.summary import Estimate
from benchmarks.comparison.tables import Figures
from benchmarks.data import DataSet
from benchmarks.mixed.findings import Case, Findings, Found, Study, measure_cases
from benchmarks.mixed.sets import ADAPTIVE, HALFSPACES, ONE_SHOT, SEED, STATE
from benchmarks.mixed.studies.logistic import LogisticRegression, f1_score, features_of, labels_of
from scrim.spec.release import ReleaseSpec
from synth.run import run
from synth.table import Table

ABOUT = """\
The columns of all tasks ([multitask](../data.md#column-sets-for-mixed-types)); 80 per cent of the rows
are private, and the rest are for testing. A logistic regression learns each of four labels from the other
columns of 20,000 synthetic rows. The tables show its F1 score on the true test rows. This follows appendix C
of the paper, with another survey year and fewer columns, so only the order of the methods is comparable."""
COLUMNS = COLUMN_SETS["multitask"]
TARGETS = {"PINCP>50000": "yes", "MIG": "same house", "PUBCOV": "1", "JWMNP>20": "yes"}
"""The labels to learn, each with its positive value."""
FEATURES = [name for name in (*COLUMNS.categorical, *COLUMNS.numeric) if name not in TARGETS]
TEST_SHARE = 0.2
SYNTHETIC_ROWS = 20_000
TRUE_ROWS, ALWAYS = "the true rows", "always yes"


@dataclass(frozen=True)
class Method:
    """A mechanism and what it measures."""

    mechanism: str
    parameters: Mapping[str, object]
    workload: list[dict[str, object]]


TREES: list[dict[str, object]] = [
    {"type": "binary_tree", "k": 2},
    {"type": "marginals", "attributes": [list(p) for p in combinations(COLUMNS.categorical, 2)]},
]
HALFSPACE_ITEMS: list[dict[str, object]] = [
    {"type": "halfspaces", "count": HALFSPACES, "seed": SEED}
]
METHODS = {
    "private_gsd, trees and marginals": Method("private_gsd", ONE_SHOT["private_gsd"], TREES),
    "private_gsd, halfspaces": Method("private_gsd", ADAPTIVE["private_gsd"], HALFSPACE_ITEMS),
    "rap_plus_plus, halfspaces": Method("rap_plus_plus", {}, HALFSPACE_ITEMS),
    "relaxed_projection, trees and marginals": Method("relaxed_projection", {}, TREES),
}


def measure(
    findings: Findings, *, epsilons: Sequence[float], runs: int, again: bool = False
) -> None:
    """Train on the true rows, and on the synthetic rows of every method at every epsilon."""
    data = persons(STATE, COLUMNS, bins=TREE_LEAVES)
    known = keep_known(method.mechanism for method in METHODS.values())
    cases: list[Case] = [
        *(
            {"method": method, "epsilon": None, "run": number}
            for number in range(runs)
            for method in (TRUE_ROWS, ALWAYS)
        ),
        *(
            {"method": name, "epsilon": epsilon, "run": number}
            for number in range(runs)
            for epsilon in epsilons
            for name, method in METHODS.items()
            if method.mechanism in known
        ),
    ]
    measure_cases(findings, cases, lambda case: _measure(case, data), again=again)


def _measure(case: Case, data: DataSet) -> Found:
    """The F1 score of each label."""
    private, test = data.split(TEST_SHARE, case["run"])
    if case["method"] == ALWAYS:
        return {
            name: f1_score(labels > -1, labels)
            for name, positive in TARGETS.items()
            for labels in [labels_of(test.table, name, positive)]
        }
    if case["method"] == TRUE_ROWS:
        return scores(private.table, test.table)
    method = METHODS[case["method"]]
    return scores(_synthetic(method, private, case["epsilon"], case["run"]), test.table)


def _synthetic(method: Method, private: DataSet, epsilon: float, seed: int) -> Table:
    release = ReleaseSpec.model_validate(
        {
            "workload": method.workload,
            "mechanism": {"name": method.mechanism, **method.parameters},
            "budget": {"epsilon": epsilon},
            "outputs": {"rows": SYNTHETIC_ROWS, "answers": False},
        }
    )
    delta = 1 / private.rows**2
    done = run(release, private.table, protection=REPLACE_ONE, delta=delta, seed=seed)
    assert done.rows is not None
    return Table(private.schema, [done.rows])


def scores(training: Table, test: Table) -> dict[str, float]:
    """The F1 score of each label, learnt from one table and tested on another."""
    learnt_from, tested_on = features_of(training, FEATURES), features_of(test, FEATURES)
    found = {}
    for name, positive in TARGETS.items():
        model = LogisticRegression(learnt_from, labels_of(training, name, positive))
        found[name] = f1_score(model.predict(tested_on), labels_of(test, name, positive))
    return found


def tables(findings: Findings) -> list[Figures]:
    """One for each epsilon, beside training on the true rows."""
    found = findings.read()
    epsilons = sorted({case["epsilon"] for case, _ in found if case["epsilon"] is not None})
    return [_table(found, epsilon) for epsilon in epsilons]


def _table(found: list[tuple[Case, Found]], epsilon: float) -> Figures:
    rows: list[list[object]] = []
    for method in (*METHODS, TRUE_ROWS, ALWAYS):
        scored = [f for c, f in found if c["method"] == method and c["epsilon"] in (epsilon, None)]
        if scored:
            means = [Estimate.of([score[name] for score in scored]) for name in TARGETS]
            rows.append([method, *means, len(scored)])
    return Figures(f"F1 scores, epsilon {epsilon:g}", ["", *TARGETS, "runs"], rows)


STUDY = Study("downstream", "Classifiers trained on synthetic rows", ABOUT, tables)
