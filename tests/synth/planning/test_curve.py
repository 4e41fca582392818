"""T5 for releases of Gaussian noise: the bound against exact sums and against dp-accounting."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from scrim.spec.budget import UNITS_PER_RHO, epsilon_of_units
from synth.planning import curve
from synth.planning.curve import MIN_VARIANCE, Moved, delta_at, epsilon_at, rho_of

TINY = [
    (Moved(1.0, 1, 1),),
    (Moved(0.75, 1, 2),),
    (Moved(0.75, 2, 1),),
    (Moved(2.0, 3, 1),),
    (Moved(3.0, 1, 2),),
    (Moved(1.5, 1, 1), Moved(1.0, 1, 1)),
    (Moved(0.8, 1, 1), Moved(2.5, 2, 1), Moved(1.5, 1, 1)),
]
EPSILONS = (0.3, 1.0, 1.5, 2.5, 5.0)


@cache
def probabilities(sigma: float) -> dict[int, Any]:
    """The discrete Gaussian with 30 digits; everything beyond 12 sigma is below 1e-31."""
    with mp.workdps(30):
        reach = math.ceil(12 * sigma) + 2
        weights = {
            x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma) ** 2)) for x in range(-reach, reach + 1)
        }
        whole = mp.fsum(weights.values())
        return {x: weight / whole for x, weight in weights.items()}


@cache
def losses(moved: Moved) -> list[tuple[Any, Any]]:
    """Every privacy loss of some coordinates that move together, with its probability."""
    with mp.workdps(30):
        sums: dict[int, Any] = {0: mpf(1)}
        for _ in range(moved.coordinates):
            longer: dict[int, Any] = {}
            for (x, p), (y, q) in product(sums.items(), probabilities(moved.sigma).items()):
                longer[x + y] = longer.get(x + y, 0) + p * q
            sums = longer
        a, variance = moved.shift, mpf(moved.sigma) ** 2
        constant = mpf(moved.coordinates * a * a) / 2
        return [((a * x + constant) / variance, p) for x, p in sums.items()]


def exact_delta(moves: Sequence[Moved], epsilon: float) -> Any:
    """The definition, summed over all outcomes that are likelier than 1e-28."""
    with mp.workdps(30):
        total = [(mpf(0), mpf(1))]
        for moved in moves:
            total = [
                (x + y, p * q)
                for (x, p), (y, q) in product(total, losses(moved))
                if p * q > mpf("1e-28")
            ]
        return mp.fsum(p * (1 - mp.exp(epsilon - x)) for x, p in total if x > epsilon)


@pytest.mark.parametrize("moves", TINY)
def test_never_below_the_definition_and_close_to_it(moves: tuple[Moved, ...]) -> None:
    for epsilon in EPSILONS:
        exact = exact_delta(moves, epsilon)
        if exact > 1e-12:
            ours = delta_at(moves, epsilon)
            assert ours >= exact, epsilon
            assert ours <= exact * (1 + mpf("0.05")), epsilon


GAPS = [
    *((5.2 + step / 20, shift, 1) for step in range(13) for shift in (1, 2, 3)),
    (1.0139591904789544, 3, 28),
]
"""Scales at which the lobes of the transform nearly touch: sigma sqrt(coordinates) of 5.2 to 5.8."""


@pytest.mark.parametrize(("sigma", "shift", "coordinates"), GAPS)
def test_no_lobe_is_skipped_where_they_nearly_touch(
    sigma: float, shift: int, coordinates: int
) -> None:
    moves = (Moved(sigma, shift, coordinates),)
    rho = rho_of(moves)
    for epsilon in [rho + t * math.sqrt(2 * rho) for t in (0.3, 1.0, 2.0, 2.8, 3.7, 4.6, 5.4)]:
        exact = exact_delta(moves, epsilon)
        if exact > 1e-15:
            assert delta_at(moves, epsilon) >= exact, epsilon


@pytest.mark.parametrize("lobes", [0, 1, 2])
def test_what_is_cut_off_is_added(monkeypatch: pytest.MonkeyPatch, lobes: int) -> None:
    """However early the sum is cut."""
    monkeypatch.setattr(curve, "LEFT_OUT", 1e9)
    monkeypatch.setattr(curve, "FIRST_LOBES", lobes)
    for reach in (50.0, 6.0, 1.0):
        monkeypatch.setattr(curve, "CUT", reach)
        for moves, epsilon in product(TINY, EPSILONS):
            assert delta_at(moves, epsilon) >= exact_delta_kept(moves, epsilon)


@cache
def exact_delta_kept(moves: tuple[Moved, ...], epsilon: float) -> Any:
    return exact_delta(moves, epsilon)


@pytest.mark.parametrize("factor", [0.05, 0.3, 1.0, 3.0])
def test_every_period_gives_a_bound(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    period = curve.period_of
    monkeypatch.setattr(curve, "period_of", lambda *given: factor * period(*given))
    for moves, epsilon in product(TINY, EPSILONS):
        assert delta_at(moves, epsilon) >= exact_delta_kept(moves, epsilon)


@pytest.mark.parametrize(
    "moves",
    [
        (Moved(3.0, 1, 10),),
        (Moved(20.0, 1, 4), Moved(5.0, 1, 1)),
        (Moved(1.5, 2, 1), Moved(4.0, 1, 20)),
        (Moved(6.0, 1, 26), Moved(8.0, 1, 60), Moved(500.0, 40, 1)),
    ],
)
def test_between_the_bounds_of_dp_accounting(moves: tuple[Moved, ...]) -> None:
    rho = rho_of(moves)
    for epsilon in (rho + 2 * math.sqrt(2 * rho), rho + 5 * math.sqrt(2 * rho)):
        low = dp_accounting_delta(moves, epsilon, pessimistic=False)
        high = dp_accounting_delta(moves, epsilon, pessimistic=True)
        assert low <= delta_at(moves, epsilon) <= high
        # Only a referee that is itself close to the truth says something.
        assert high <= low * 1.05


def dp_accounting_delta(moves: Sequence[Moved], epsilon: float, *, pessimistic: bool) -> float:
    """What dp-accounting says, with losses rounded up or down to a grid."""
    total = None
    for moved in moves:
        one = privacy_loss_distribution.from_discrete_gaussian_mechanism(
            moved.sigma,
            sensitivity=moved.shift,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=1e-4,
        )
        some = one.self_compose(moved.coordinates) if moved.coordinates > 1 else one
        total = some if total is None else total.compose(some)
    assert total is not None
    return float(total.get_delta_for_epsilon(epsilon))


def test_more_noise_is_not_always_dominated() -> None:
    """Why the scale of the bound must be the scale that is used."""
    less, more = (exact_delta([Moved(sigma, 1, 1)], 1.5) for sigma in (1.0, 1.02))
    assert more > less * 1.01


@given(st.floats(0.75, 20), st.integers(1, 5), st.integers(1, 40), st.floats(2, 6))
def test_a_smaller_move_costs_no_more(sigma: float, shift: int, count: int, far: float) -> None:
    moves = (Moved(sigma, shift, count),)
    rho = rho_of(moves)
    epsilon = rho + far * math.sqrt(2 * rho)
    at_most = delta_at(moves, epsilon) * (1 + 1e-9)
    slack = 1.02  # both are bounds, and the smaller one need not be the closer one
    assert delta_at((Moved(sigma, shift, count + 1),), epsilon) * slack >= at_most
    assert delta_at((Moved(sigma, shift + 1, count),), epsilon) * slack >= at_most


@pytest.mark.parametrize("delta", [1e-4, 1e-9, 1e-14])
def test_the_bound_holds_at_the_stated_epsilon(delta: float) -> None:
    for sigma in (2.0, 50.0):
        moves = (Moved(sigma, 1, 20),)
        found = epsilon_at(moves, delta, at_most=100.0)
        assert found is not None
        assert delta * 0.99 < delta_at(moves, found) <= delta


@settings(max_examples=40)
@given(st.floats(-5, 1), st.sampled_from([1, 2, 30, 182]), st.floats(-15, -5))
def test_epsilon_is_certified_and_below_the_conversion_of_zcdp(
    exponent: float, count: int, power: float
) -> None:
    delta, rho = 10**power, 10**exponent
    sigma = math.sqrt(count / (2 * rho))
    moves = (Moved(sigma, 1, count),)
    converted = epsilon_of_units(math.ceil(rho_of(moves) * UNITS_PER_RHO), delta)
    found = epsilon_at(moves, delta, at_most=converted)
    assert found is None or (found < converted and delta_at(moves, found) <= delta)
    assert found is not None or sigma < 2
    # The continuous Gaussian, whose curve is known in closed form.
    if found is not None and sigma > 20:
        assert continuous_delta(rho, found) == pytest.approx(delta, rel=2e-3)


def continuous_delta(rho: float, epsilon: float) -> float:
    """The curve of the continuous Gaussian (Balle, Wang 2018)."""
    with mp.workdps(40):
        mu = mp.sqrt(2 * mpf(rho))
        low = mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
        return float(mp.ncdf(mu / 2 - epsilon / mu) - low)


def test_little_noise_has_no_curve() -> None:
    """The bound on what is cut off needs a variance of 1/2."""
    assert delta_at((Moved(math.sqrt(MIN_VARIANCE) * 0.999, 1, 1),), 3.0) == 1
    assert delta_at((Moved(math.sqrt(MIN_VARIANCE) * 1.001, 1, 1),), 3.0) < 0.1


def test_without_noise_to_add_nothing_is_revealed() -> None:
    assert delta_at((), 1.0) == 0
    assert epsilon_at((), 1e-9, at_most=1.0) == 0


def test_many_scales_get_fewer_terms_and_a_larger_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = [Moved(2 + position / 50, shift=1, coordinates=4) for position in range(60)]
    calls = [0]
    transform = curve._log_transform

    def counted(z: complex, moved: Moved) -> complex:
        calls[0] += 1
        return transform(z, moved)

    monkeypatch.setattr(curve, "_log_transform", counted)
    bounded = delta_at(moves, 40.0)
    assert calls[0] < 2 * curve.MAX_EVALUATIONS
    monkeypatch.setattr(curve, "MAX_EVALUATIONS", 10**9)
    calls[0] = 0
    assert delta_at(moves, 40.0) < bounded
    assert calls[0] > 2 * 15_000
