"""Errors of `gaussian` on all three-way marginals of ADULT: python -m benchmarks.gaussian [runs]."""

import math
import sys
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import DataSet, adult
from benchmarks.report import print_table
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from synth.planning.choice import resolve
from synth.planning.forecast import forecast
from synth.planning.subject import Subject
from synth.queries import compile_workload
from synth.run import run

RUNS = 3
EPSILONS = (0.1, 1.0, 10.0)
PROTECTIONS = (Protection(), Protection(relation="replace_one"))
MECHANISMS: tuple[Mapping[str, object], ...] = (
    {"name": "gaussian"},
    {"name": "gaussian", "objective": "max"},
)


def release_of(mechanism: Mapping[str, object], epsilon: float) -> ReleaseSpec:
    """A release of the answers to all three-way marginals."""
    return ReleaseSpec.model_validate(
        {
            "workload": [{"type": "marginals", "k": 3}],
            "mechanism": mechanism,
            "budget": {"epsilon": epsilon},
        }
    )


def forecast_error(spec: ReleaseSpec, data: DataSet, protection: Protection) -> float:
    """The root mean square error that the preview states, as a fraction of the rows."""
    resolved = resolve(spec, data.schema, protection, 1 / data.rows**2)
    (item,) = forecast(resolved, Subject("rows", data.schema, protection)).items
    assert item.sigma is not None
    return item.sigma / data.rows


def errors(
    spec: ReleaseSpec,
    data: DataSet,
    protection: Protection,
    true: NDArray[np.float64],
    *,
    runs: int,
) -> list[float]:
    """The root mean square, the mean and the largest error, each the mean over the runs."""
    found = []
    for _ in range(runs):
        answers = run(spec, data.table, protection=protection, delta=1 / data.rows**2).answers
        assert answers is not None
        error = np.abs(answers.fractions - true)
        found.append([math.sqrt(float(np.mean(error**2))), error.mean(), error.max()])
    return [float(figure) for figure in np.mean(found, axis=0)]


def main() -> None:
    """Print one line for each relation, objective and epsilon."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    data = adult()
    workload = release_of(MECHANISMS[0], 1.0).workload
    true = compile_workload(workload, data.schema).count(data.table) / data.rows
    lines = []
    for protection in PROTECTIONS:
        for mechanism in MECHANISMS:
            for epsilon in EPSILONS:
                spec = release_of(mechanism, epsilon)
                found = [
                    forecast_error(spec, data, protection),
                    *errors(spec, data, protection, true, runs=runs),
                ]
                setting = (
                    f"{protection.relation}, {mechanism.get('objective', 'mean')}, {epsilon:g}"
                )
                lines.append([setting, *(f"{figure:.4g}" for figure in found)])
    print_table(
        f"gaussian on ADULT, 286 three-way marginals, delta 1/n^2, mean of {runs} runs",
        ["relation, objective, epsilon", "forecast rms", "rms", "mean", "max"],
        lines,
    )


if __name__ == "__main__":
    main()
