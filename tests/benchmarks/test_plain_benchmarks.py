"""Benchmarks that print their figures: what they measure is a release as the service would plan it."""

import numpy as np
import pytest

from benchmarks import gaussian, speed
from benchmarks.data import DataSet
from scrim.spec.budget import Budget
from scrim.spec.population import Protection
from synth.queries import compile_workload
from synth.table import Table
from tests.support import coded_schema

SIZES = {"a": 3, "b": 4, "c": 2}
ROWS = 2_000


def toy_data() -> DataSet:
    schema = coded_schema(SIZES)
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(size, size=ROWS).astype(np.uint8) for name, size in SIZES.items()}
    return DataSet(schema, Table(schema, [codes]), ROWS)


def test_the_small_job_has_the_budget_it_states() -> None:
    release = speed.small_release(speed.small_table())
    assert release.budget == Budget(epsilon=2.0)
    assert release.synthetic_rows == speed.ROWS


@pytest.mark.random
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_noisy_answers_err_as_forecast(relation: str) -> None:
    """24 cells, 40 runs: the root mean square is off by a factor of 1.5 with a chance below 1e-9, even if
    the cells of one run had only a quarter of their independent noise.
    """
    data, protection = toy_data(), Protection.model_validate({"relation": relation})
    spec = gaussian.release_of(gaussian.MECHANISMS[0], 1.0)
    true = compile_workload(spec.workload, data.schema).count(data.table) / data.rows
    expected = gaussian.forecast_error(spec, data, protection)
    found, _, _ = gaussian.errors(spec, data, protection, true, runs=40)
    assert expected / 1.5 < found < 1.5 * expected
