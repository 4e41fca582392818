"""How each mechanism divides its budget."""

import inspect
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.spec.errors import SpecError
from scrim.spec.mechanism import (
    MECHANISMS,
    AdaptiveSpec,
    Gaussian,
    Gem,
    MechanismSpec,
    Mwem,
    Pep,
    PepPub,
    PmwPub,
    RapSoftmax,
    RelaxedProjection,
)
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.workload import Block, Blocks, MarginalBlock
from synth.planning.planner import Planner, planner_of
from synth.planning.spending import Setting
from tests.support import coded_schema

amounts = st.integers(1, 10**15)
blocks_strategy = st.integers(1, 300)


def marginals(count: int) -> list[Block]:
    """That many pairs of columns, no column twice."""
    return [MarginalBlock((f"a{i}", f"b{i}")) for i in range(count)]


@cache
def schema(count: int) -> Schema:
    return coded_schema({f"{letter}{i}": 2 for i in range(count) for letter in "abc"} | {"d": 2})


def setting(count: int, units: int) -> Setting:
    """A budget for blocks of that many columns."""
    declared = schema(count)
    return Setting(declared, Protection(), units, 1000, Blocks([], declared))


def planned(spec: MechanismSpec, measured: list[Block], setting: Setting) -> Any:
    """The plan by which a mechanism spends."""
    return planner_of(spec).plan(spec, measured, setting)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_file_with_a_mechanisms_name_has_every_function(
    mechanism: type[MechanismSpec],
) -> None:
    planner = planner_of(mechanism.model_validate({"name": mechanism.catalogue_name()}))
    for name in ("choose_measured", "plan", "memory_bytes"):
        wanted = list(inspect.signature(getattr(Planner, name)).parameters)[1:]
        assert list(inspect.signature(getattr(planner, name)).parameters) == wanted


@given(blocks_strategy, amounts)
def test_one_shot_plans_never_exceed_the_budget(blocks: int, units: int) -> None:
    mechanism = Gaussian(name="gaussian")
    if units < blocks:
        with pytest.raises(SpecError, match=f"too small for {blocks} measurements"):
            planned(mechanism, marginals(blocks), setting(blocks, units))
        return
    measure = planned(mechanism, marginals(blocks), setting(blocks, units)).measure
    assert len(measure) == blocks and min(measure) == max(measure) >= 1
    assert sum(measure) <= units < sum(measure) + blocks


@given(st.integers(1, 30), st.integers(0, 60), st.floats(0.01, 0.99), amounts)
def test_one_way_marginals_have_a_share_of_their_own(
    ones: int, twos: int, share: float, units: int
) -> None:
    spec = RelaxedProjection(name="relaxed_projection", one_way_share=share)
    measured: list[Block] = [MarginalBlock((f"c{i}",)) for i in range(ones)]
    measured += [MarginalBlock((f"c{i}", "d")) for i in range(twos)]
    try:
        measure = planned(spec, measured, setting(max(ones, twos), units)).measure
    except SpecError as refused:
        assert "too small" in str(refused)
        return
    assert units - len(measured) < sum(measure) <= units
    if twos:
        assert sum(measure[:ones]) == pytest.approx(share * units, abs=ones + 1)


@given(
    st.sampled_from([PmwPub, PepPub, Gem, RapSoftmax]),
    st.none() | st.integers(1, 10_000),
    st.integers(1, 1000),
    st.floats(0.001, 0.999),
    blocks_strategy,
    amounts,
)
def test_adaptive_plans_count_every_round_and_every_choice(
    mechanism: type[AdaptiveSpec],
    rounds: int | None,
    per_round: int,
    share: float,
    blocks: int,
    units: int,
) -> None:
    spec = mechanism.model_validate(
        {
            "name": mechanism.catalogue_name(),
            "rounds": rounds,
            "per_round": per_round,
            "selection_share": share,
        }
    )
    try:
        plan = planned(spec, marginals(blocks), setting(blocks, units))
    except SpecError as refused:
        assert "ask for fewer rounds" in str(refused)
        return
    assert rounds is None or plan.rounds == rounds
    assert min(plan.select, plan.measure) >= 1
    # One selection of all k, then k measurements, in each of T rounds.
    columns = len(plan.opened)
    assert columns in (0, 2 * blocks)
    spent = columns * plan.opening + plan.rounds * (plan.select + plan.per_round * plan.measure)
    assert spent <= units
    assert units - spent < plan.rounds * plan.per_round
    wanted = pytest.approx(spec.opening_share * units, abs=2 * blocks)
    assert columns * plan.opening == wanted
    assert plan.select % plan.per_round == 0


@given(st.floats(0.05, 0.95))
def test_the_share_of_selecting_is_the_papers(share: float) -> None:
    spec = Mwem(name="mwem", rounds=10, per_round=4, selection_share=share)
    plan = planned(spec, marginals(5), setting(5, 10**12))
    each = plan.select // plan.per_round
    wanted = share**2 / (share**2 + (1 - share) ** 2)
    assert each / (each + plan.measure) == pytest.approx(wanted, rel=1e-6)


def test_a_budget_that_leaves_nothing_for_a_round_is_refused() -> None:
    with pytest.raises(SpecError, match="100 rounds of 10"):
        planned(Pep(name="pep", rounds=100, per_round=10), marginals(5), setting(5, 999))
