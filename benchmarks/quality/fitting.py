"""Fitting the constants of the forecast to measured releases."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, minimize_scalar

from scrim.spec.schema import Schema
from scrim.spec.workload import Block
from synth.planning.constants import CONSTANTS, Constants, MechanismFit
from synth.planning.expected import Expected, TableForecaster
from synth.planning.knowledge import Knowledge

SHARED = ("spread", "lost", "drawn")
PULL = 0.1
"""How strongly constants stay near their start, against one release that is off by a factor of e."""
PULL_OF_PEAKS = 0.3
PEAKS = (-2.0, 3.0)
"""Logarithms between which the peaks are searched."""
START = replace(CONSTANTS, spread=0.8, lost=0.5, drawn=0.05, fits={})
"""Where every fit starts, so that a table that is left out does not matter."""


@dataclass(frozen=True)
class Measured:
    """A forecast release of tables, and its measured errors."""

    table: str
    mechanism: str
    epsilon: float
    known: Knowledge
    schema: Schema
    blocks: Sequence[Block]
    """Some of what was asked."""
    queries: int
    tables: int
    rows: int
    errors: Expected
    """What was measured."""
    stated: Expected
    """What a preview says."""

    def forecast(self, constants: Constants) -> Expected:
        """What these constants expect."""
        forecaster = TableForecaster(self.schema, self.known, constants, self.mechanism, self.rows)
        return forecaster.of_tables(self.blocks, self.queries, tables=self.tables)


def fitted(releases: Sequence[Measured], start: Constants = START) -> Constants:
    """The constants that forecast these releases best.

    What all mechanisms share is fitted to the one with the most releases.
    """
    by_name: dict[str, list[Measured]] = defaultdict(list)
    for each in releases:
        by_name[each.mechanism].append(each)
    most = max(by_name, key=lambda name: len(by_name[name]))
    shared = _fit_variation(by_name[most], start, most, SHARED)
    own = {name: _fit_variation(by_name[name], shared, name, ()) for name in sorted(by_name)}
    fits = {name: _fit_peak(by_name[name], own[name], name) for name in own}
    return replace(shared, fits=fits)


def _fit_variation(
    releases: Sequence[Measured], start: Constants, name: str, shared: Sequence[str]
) -> Constants:
    """Fit the constants of a mechanism, and with them those of the shared ones that are named."""
    own = start.fits.get(name, start.others)

    def constants(logs: NDArray[np.float64]) -> Constants:
        noise, misfit, *values = (float(each) for each in np.exp(logs))
        fit = replace(own, noise=noise, misfit=misfit)
        changed: dict[str, Any] = dict(zip(shared, values, strict=True))
        return replace(start, fits={name: fit}, **changed)

    first = np.log([own.noise, own.misfit, *(getattr(start, each) for each in shared)])

    def off(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        tried = constants(logs)
        ratios = [
            math.log(_variation(each.forecast(tried)) / _variation(each.errors))
            for each in releases
        ]
        return np.array([*ratios, *(PULL * (logs - first))])

    found = least_squares(off, first, loss="soft_l1", f_scale=0.4, max_nfev=15, diff_step=1e-3)
    return constants(found.x)


def _fit_peak(releases: Sequence[Measured], varied: Constants, name: str) -> MechanismFit:
    def fit(log: float) -> MechanismFit:
        return replace(varied.fits[name], peak=math.exp(log))

    def off(log: float) -> float:
        tried = replace(varied, fits={name: fit(log)})
        ratios = [math.log(r.forecast(tried).max_error / r.errors.max_error) for r in releases]
        return sum(map(abs, ratios)) + (PULL_OF_PEAKS * log) ** 2

    return fit(float(minimize_scalar(off, bounds=PEAKS, method="bounded").x))


def _variation(errors: Expected) -> float:
    assert errors.mean_total_variation is not None
    return max(1e-9, errors.mean_total_variation)
