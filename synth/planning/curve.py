"""The exact (epsilon, delta) of discrete Gaussian noise, composed over all coordinates that move.

docs/privacy.md, section 2.9, derives every formula. With L the privacy loss, delta(epsilon) is
E[max(0, 1 - e^(epsilon - L))]. It is read from the transform E[e^(z L)] by a sum over equidistant z. All
terms of that sum contribute non-negative errors, and what the sum leaves out is bounded and added. So
the result is never less than delta.
"""

import cmath
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MIN_VARIANCE = 0.5
"""The bound on what is left out needs at least this variance."""
CUT = 50.0
"""Terms are evaluated where their bound is above e^-CUT."""
FIRST_LOBES = 0
"""Lobes beside the central one that are always evaluated."""
LEFT_OUT = 1e-3
"""The sum is continued until what is left out is at most this part of it ..."""
MAX_TERMS = 1_000
"""... or until it has more terms than this ..."""
MAX_EVALUATIONS = 15_000
"""... or until the next terms, times the number of classes, would be more than this. A sum that stops early
is a larger bound."""
UNDERFLOW = 1e-300
"""More than all terms that are too small for a float."""
_TAU = 2 * math.pi


@dataclass(frozen=True)
class Moved:
    """Counts with noise of one scale that the worst neighbour moves, each by the same number."""

    sigma: float
    shift: int
    coordinates: int

    @property
    def rho(self) -> float:
        """What they cost in zCDP."""
        return self.coordinates * self.shift**2 / (2 * self.sigma**2)

    @property
    def spacing(self) -> float:
        """The period of the loss's characteristic function: losses lie on a lattice."""
        return _TAU * self.sigma**2 / self.shift


def rho_of(moves: Sequence[Moved]) -> float:
    """What all of them cost in zCDP."""
    return math.fsum(moved.rho for moved in moves)


def delta_at(moves: Sequence[Moved], epsilon: float) -> float:
    """The smallest delta at which the noise guarantees `epsilon`, rounded up; 1 if it is not known."""
    classes = merge(moves)
    if not classes:
        return 0.0
    if epsilon <= 0 or any(moved.sigma**2 < MIN_VARIANCE for moved in classes):
        return 1.0
    rho, count = rho_of(classes), sum(moved.coordinates for moved in classes)
    tilt = _tilt_of(epsilon, rho)
    step = _TAU / period_of(epsilon, rho, tilt)
    whole = sum(m.coordinates * _log_transform(complex(tilt), m).real for m in classes)
    height = math.exp(whole - tilt * epsilon)

    def term(w: float) -> tuple[float, float]:
        z = complex(tilt, w)
        exponent = sum(m.coordinates * _log_transform(z, m) for m in classes) - z * epsilon
        value = cmath.exp(exponent) / (z * (z + 1))
        size = count + len(classes) * (abs(z * (z + 1)) * rho + abs(z) * epsilon) + 100
        return value.real, abs(value) * size * 2.0**-48

    most = MAX_EVALUATIONS / len(classes)
    found, rest = _sum_terms(term, _slowest_to_repeat(classes), step=step, height=height, most=most)
    return min(1.0, (found + rest) * (1 + 2**-40) + UNDERFLOW)


def epsilon_at(moves: Sequence[Moved], delta: float, *, at_most: float) -> float | None:
    """The smallest epsilon below `at_most` that the noise guarantees at `delta`; None if there is none."""
    if not any(moved.coordinates for moved in moves):
        return 0.0
    if at_most <= 0 or delta_at(moves, at_most) > delta:
        return None
    low, high = 0.0, at_most
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        if delta_at(moves, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _tilt_of(epsilon: float, rho: float) -> float:
    """The tilt that moves the mean loss to epsilon; every positive value gives a bound.

    A multiple of 2^-20, so that its products with shifts, which are phases, are exact.
    """
    wanted = max((epsilon - rho) / (2 * rho), 0.1 / math.sqrt(rho))
    return max(1, round(wanted * 2**20)) / 2**20


def period_of(epsilon: float, rho: float, tilt: float) -> float:
    """A distance at which the curve has decayed, in both directions; every value gives a bound."""
    decay = tilt * epsilon - tilt * (tilt + 1) * rho
    return max((30 + max(0.0, decay)) / tilt, 9 * math.sqrt(rho))


def merge(moves: Sequence[Moved]) -> list[Moved]:
    """Coordinates with the same scale and shift together."""
    together: Counter[tuple[float, int]] = Counter()
    for moved in moves:
        if moved.shift:
            together[moved.sigma, moved.shift] += moved.coordinates
    return [Moved(sigma, shift, count) for (sigma, shift), count in together.items() if count]


def _slowest_to_repeat(classes: Sequence[Moved]) -> Moved:
    """The class that bounds what the sum leaves out; every class gives a bound."""
    share = min(rho_of(classes) / 100, max(moved.rho for moved in classes))
    large = [moved for moved in classes if moved.rho >= share]
    return max(large, key=lambda moved: moved.spacing**2 * math.sqrt(moved.rho))


def _log_transform(z: complex, moved: Moved) -> complex:
    """ln E[e^(z L)] of one coordinate.

    e^(z (z+1) rho) Theta(z a) / Theta(0), with each term of Theta relative to the largest one: for
    z = t + i w, term k has the size exp(-rho (w + k spacing)^2).
    """
    rho, spacing = moved.shift**2 / (2 * moved.sigma**2), _TAU * moved.sigma**2 / moved.shift
    nearest = -round(z.imag / spacing)
    offset = z.imag + nearest * spacing
    turned = _TAU * math.fmod(nearest * z.real * moved.shift, 1.0)
    main = complex(
        rho * (z.real * (z.real + 1) - offset**2), rho * (2 * z.real + 1) * z.imag + turned
    )
    if rho * spacing * (spacing - 2 * abs(offset)) > 60:  # no other term is larger than e^-60
        return main
    theta = complex(1.0)
    for k in (-3, -2, -1, 1, 2, 3):
        size = -rho * k * spacing * (2 * offset + k * spacing)
        theta += cmath.exp(complex(size, _TAU * math.fmod(k * z.real * moved.shift, 1.0)))
    at_zero = 1 + 2 * math.exp(-rho * spacing**2)
    return main + cmath.log(theta / at_zero)


def _sum_terms(
    term: Callable[[float], tuple[float, float]],
    bounding: Moved,
    *,
    step: float,
    height: float,
    most: float,
) -> tuple[float, float]:
    """The sum over the first lobes, and a bound on its rounding error and on what it leaves out.

    Lobes beside the central one are added while there are at most `most` terms.
    """
    decay, spacing = 0.36 * bounding.rho, bounding.spacing
    reach = math.sqrt(CUT / decay)
    area = math.sqrt(math.pi / decay) + step
    between = math.exp(-CUT) * (1 / reach + step / reach**2)
    first, error = term(0.0)
    values, error = [step / _TAU * first], step / _TAU * error
    n, lobes, terms = 1, FIRST_LOBES, 0
    while True:
        while n * step <= (lobes + 0.5) * spacing:
            centre = round(n * step / spacing) * spacing
            if abs(n * step - centre) > reach:  # between lobes: skip to the next one
                ahead = centre if n * step < centre else centre + spacing
                n = max(n + 1, math.floor((ahead - reach) / step))
                continue
            value, rounding = term(n * step)
            values.append(step / math.pi * value)
            error += step / math.pi * rounding
            n, terms = n + 1, terms + 1
        found = math.fsum(values)
        beyond = area * (1 / lobes if lobes else math.pi**2 / 2) / spacing**2
        rest = height / math.pi * (between + beyond)
        further = 2 * reach / step * max(1, lobes)
        if rest <= LEFT_OUT * found or terms > MAX_TERMS or terms + further > most:
            return found, rest + error
        lobes = 2 * lobes or 1
