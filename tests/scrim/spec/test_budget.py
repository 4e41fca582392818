"""Budgets and their conversion to (epsilon, delta), compared with two other libraries."""

import math
import random
from fractions import Fraction
from functools import cache
from typing import Any

import dp_accounting
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from pydantic import ValidationError

from scrim.spec.budget import (
    MAX_RHO,
    UNITS_PER_RHO,
    Budget,
    epsilon_of_units,
    rho_of_units,
    units_of_epsilon,
)
from scrim.spec.population import PopulationSpec

_random = random.Random(20)
PAIRS = [(10 ** _random.uniform(-6, 2), 10 ** _random.uniform(-18, -3)) for _ in range(300)]

units_strategy = st.floats(0, 14).map(lambda exponent: int(10**exponent))
deltas = st.floats(-18, -3).map(lambda exponent: 10**exponent)


def units_of(rho: float) -> int:
    return math.ceil(rho * UNITS_PER_RHO)


def opendp_epsilon(rho: float, delta: float) -> float:
    """The epsilon of that rho according to OpenDP."""
    dp.enable_features("contrib", "honest-but-curious")
    measurement = dp.m.make_user_measurement(
        dp.atom_domain(T="i32"),
        dp.absolute_distance(T="i32"),
        dp.zero_concentrated_divergence(),
        function=lambda value: value,
        privacy_map=lambda _: rho,
        TO="i32",
    )
    return float(dp.c.make_zCDP_to_approxDP(measurement).map(1).epsilon(delta))


@cache
def orders() -> list[float]:
    return [1 + 10 ** (step / 150) for step in range(-300, 1200)]


def dp_accounting_epsilon(rho: float, delta: float) -> float:
    """The epsilon according to dp-accounting, on a grid of orders: never below the optimum."""
    accountant = dp_accounting.rdp.RdpAccountant(orders=orders())
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    return float(accountant.get_epsilon(delta))


def exact_epsilon(units: int, delta: float) -> Any:
    """The minimum over all orders, with 50 digits."""
    with mp.workdps(50):
        rho, failure = mpf(units) / UNITS_PER_RHO, mpf(delta)
        low, high = mpf("1e-20"), mpf("1e30")
        for _ in range(250):
            middle = mp.sqrt(low * high)
            falls = rho * middle**2 + mp.log((1 + middle) * failure) < 0
            low, high = (middle, high) if falls else (low, middle)
        order = 1 + low
        bound = rho * order - mp.log(order * failure) / low + mp.log(low / order)
        return max(bound, mpf(0))


def test_agrees_with_opendp() -> None:
    for rho, delta in PAIRS:
        ours, theirs = epsilon_of_units(units_of(rho), delta), opendp_epsilon(rho, delta)
        assert ours >= theirs - 1e-9, (rho, delta)
        assert ours <= theirs * (1 + 1e-4), (rho, delta)


def test_agrees_with_dp_accounting() -> None:
    for rho, delta in PAIRS:
        ours, theirs = epsilon_of_units(units_of(rho), delta), dp_accounting_epsilon(rho, delta)
        assert ours <= theirs * (1 + 1e-4), (rho, delta)
        # Their orders lie on a grid, so their epsilon is slightly larger.
        assert theirs <= ours * (1 + 1e-3), (rho, delta)


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon"),
    [(0.1, 1e-6, 2.142), (0.5, 1e-6, 5.222), (1.0, 1e-10, 10.034)],
)
def test_check_values(rho: float, delta: float, epsilon: float) -> None:
    assert epsilon_of_units(units_of(rho), delta) == pytest.approx(epsilon, abs=5e-4)


@given(units_strategy, deltas)
def test_epsilon_is_rounded_up_by_next_to_nothing(units: int, delta: float) -> None:
    exact = exact_epsilon(units, delta)
    ours = epsilon_of_units(units, delta)
    assert ours >= exact
    assert ours <= exact * (1 + mpf("1e-9")) + mpf("1e-18")


@given(units_strategy, deltas)
def test_epsilon_grows_with_every_unit(units: int, delta: float) -> None:
    assert epsilon_of_units(units, delta) <= epsilon_of_units(units + 1, delta)


@given(units_strategy, deltas, st.floats(1, 10))
def test_epsilon_falls_with_delta(units: int, delta: float, factor: float) -> None:
    assert epsilon_of_units(units, delta * factor) <= epsilon_of_units(units, delta)


@given(st.floats(1e-6, 500), deltas)
def test_as_many_units_as_epsilon_allows(epsilon: float, delta: float) -> None:
    units = units_of_epsilon(epsilon, delta)
    assert epsilon_of_units(units, delta) <= epsilon < epsilon_of_units(units + 1, delta)


def test_zero_units_cost_nothing() -> None:
    assert epsilon_of_units(0, 1e-9) == 0
    assert units_of_epsilon(1e-12, 1e-18) == 0


@pytest.mark.parametrize("delta", [0.0, -1e-9, 1.0, math.nan, math.inf])
def test_an_impossible_delta_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        epsilon_of_units(1, delta)


def test_negative_units_are_refused() -> None:
    with pytest.raises(ValueError, match="units"):
        epsilon_of_units(-1, 1e-9)


@given(st.floats(1e-12, MAX_RHO))
def test_a_budget_of_rho_is_rounded_down(rho: float) -> None:
    units = Budget(rho=rho).units(1e-9)
    written = Fraction(repr(rho))
    assert units <= written * UNITS_PER_RHO < units + 1


@given(st.floats(0.01, 50), deltas)
def test_a_budget_of_epsilon_is_never_exceeded(epsilon: float, delta: float) -> None:
    assert epsilon_of_units(Budget(epsilon=epsilon).units(delta), delta) <= epsilon


def test_less_than_one_unit_is_no_budget() -> None:
    assert Budget(rho=9e-13).units(1e-9) == 0


def test_units_are_shown_as_rho() -> None:
    assert rho_of_units(UNITS_PER_RHO // 4) == 0.25


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"rho": 1.0, "epsilon": 1.0},
        {"rho": 0},
        {"rho": -1.0},
        {"rho": math.nan},
        {"rho": math.inf},
        {"rho": 1000.1},
        {"rho": "1"},
        {"rho": True},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"epsilon": 1001},
        {"rho": 1.0, "delta": 1e-9},
    ],
)
def test_what_is_not_a_budget(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Budget.model_validate(fields)


@pytest.mark.parametrize("delta", [0.0, 1e-19, 0.01, math.nan, "1e-9"])
def test_what_is_not_a_delta(delta: Any) -> None:
    with pytest.raises(ValidationError):
        PopulationSpec.model_validate({"name": "us", "cap": {"rho": 1.0}, "delta": delta})


def test_decimals_mean_what_was_written() -> None:
    assert Budget(rho=0.7).units(1e-9) == 7 * Budget(rho=0.1).units(1e-9)
