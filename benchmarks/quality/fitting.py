"""Fitting the constants of the forecast to measured releases."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, minimize_scalar

from scrim.spec.schema import Schema
from scrim.spec.workload import Block
from synth.planning.constants import CONSTANTS, Constants, MechanismFit
from synth.planning.expected import Expected, Teller
from synth.planning.knowledge import Knowledge

SHARED = ("spread", "lost", "drawn")
PULL = 0.1
"""How strongly constants stay near their start, against one release that is off by a factor of e."""
PULL_OF_PEAKS = 0.3
PEAKS = (-2.0, 2.0)
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
        teller = Teller(self.schema, self.known, constants, self.mechanism, self.rows)
        found = teller.of_tables(self.blocks, self.queries, most=len(self.blocks))
        mean = 2 * (found.mean_total_variation or 0.0) * self.tables / self.queries
        return replace(found, mean_absolute_error=mean)


def fitted(releases: Sequence[Measured], start: Constants = START) -> Constants:
    """The constants that forecast these releases best."""
    mechanisms = sorted({each.mechanism for each in releases})
    fits = {name: start.fits.get(name, start.others) for name in mechanisms}
    begin = replace(start, fits=fits)
    varied = _fit_variation(releases, begin, mechanisms)
    return _fit_peaks(releases, varied, mechanisms)


def _fit_variation(
    releases: Sequence[Measured], begin: Constants, mechanisms: Sequence[str]
) -> Constants:
    def constants(logs: NDArray[np.float64]) -> Constants:
        values = [float(each) for each in np.exp(logs)]
        spread, lost, drawn, *rest = values
        own = iter(rest)
        fits = {
            name: replace(begin.fits[name], noise=next(own), misfit=next(own))
            for name in mechanisms
        }
        return replace(begin, fits=fits, spread=spread, lost=lost, drawn=drawn)

    own = [getattr(begin.fits[name], part) for name in mechanisms for part in ("noise", "misfit")]
    first = np.log([*(getattr(begin, name) for name in SHARED), *own])

    def off(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        tried = constants(logs)
        ratios = [
            math.log(_variation(each.forecast(tried)) / _variation(each.errors))
            for each in releases
        ]
        return np.array([*ratios, *(PULL * (logs - first))])

    found = least_squares(
        off,
        first,
        jac_sparsity=_sparsity(releases, mechanisms),
        loss="soft_l1",
        f_scale=0.4,
        max_nfev=15,
        diff_step=1e-3,
    )
    return constants(found.x)


def _sparsity(releases: Sequence[Measured], mechanisms: Sequence[str]) -> NDArray[np.int64]:
    """Which constants a release depends on: the shared ones, and those of its mechanism."""
    width = len(SHARED) + 2 * len(mechanisms)
    matters = np.zeros((len(releases), width), dtype=np.int64)
    matters[:, : len(SHARED)] = 1
    for row, each in enumerate(releases):
        column = len(SHARED) + 2 * mechanisms.index(each.mechanism)
        matters[row, column : column + 2] = 1
    return np.vstack([matters, np.eye(width, dtype=np.int64)])


def _fit_peaks(
    releases: Sequence[Measured], varied: Constants, mechanisms: Sequence[str]
) -> Constants:
    """The peaks, one mechanism after the other: no two share releases."""
    found = {
        name: _fit_peak([each for each in releases if each.mechanism == name], varied, name)
        for name in mechanisms
    }
    return replace(varied, fits=found)


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
