"""A judged release from the table to a line of figures. It needs scikit-learn (`make setup-bench`)."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from benchmarks.comparison.grid import Grid, run_grid
from benchmarks.data import DataSet
from benchmarks.judge.classifier import classifier_auc
from benchmarks.judge.job import judge_table
from benchmarks.judge.outcomes import newest_code, read_judgements
from benchmarks.judge.sets import JudgedSet, Target
from benchmarks.products.sets import all_marginals
from synth.table import Table
from tests.support import coded_schema

SIZES = {"a": 3, "b": 4, "label": 2}


def toy_data(rows: int = 2_000, seed: int = 0) -> DataSet:
    """Rows whose label mostly says whether `a` is 2."""
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(size, size=rows) for name, size in SIZES.items()}
    codes["label"] = np.where(rng.random(rows) < 0.8, codes["a"] == 2, codes["label"])
    schema = coded_schema(SIZES)
    chunk = {name: column.astype(np.uint8) for name, column in codes.items()}
    return DataSet(schema, Table(schema, [chunk]), rows)


def test_a_classifier_learns_what_is_there() -> None:
    target = Target("label", [1])
    training, test = toy_data().split(0.25, 0)
    assert 1_400 < training.rows < 1_600 and training.rows + test.rows == 2_000
    assert classifier_auc(training, test, target, features=["a", "b"]) > 0.8
    assert classifier_auc(training, test, target, features=["b"]) < 0.6
    never = training.keep_rows(training.codes["label"] == 0)
    assert classifier_auc(never, test, target, features=["a", "b"]) == 0.5


@pytest.mark.random
def test_a_judged_release_becomes_a_line(tmp_path: Path) -> None:
    toy = JudgedSet(
        "toy",
        "A toy",
        toy_data,
        all_marginals,
        Target("label", [1]),
        tuned=False,
        mechanisms=("auto",),
    )
    path = tmp_path / "judge.jsonl"
    grid = Grid((1_000.0,), runs=1)
    for _ in range(2):
        run_grid([toy.comparison], grid, results=path, same_code=True, judge=judge_table)
    assert len(path.read_text().splitlines()) == 1
    [found] = read_judgements(path, code=newest_code(path)).values()
    assert found.chosen != "auto"
    assert found.table_rows == 2_000 and 1_500 < found.rows < 1_700
    assert found.released_rows is not None and found.released_rows.rms is not None
    # At such a budget noise hardly counts, and rows are drawn so that their cross tables match.
    assert found.released_rows.mean <= found.released_rows.rms <= found.released_rows.max < 0.05
    assert found.pairs.mean <= found.pairs.max < 0.1
    assert found.auc_ratio > 0.9
    assert found.processor_seconds > 0
