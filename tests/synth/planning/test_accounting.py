"""Which releases have an exact curve, what an epsilon buys by it, and that the door keeps to it."""

import math
from collections import Counter
from operator import truediv
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrim.spec.budget import UNITS_PER_RHO, epsilon_of_units, units_of_epsilon
from scrim.spec.errors import SpecError
from scrim.spec.mechanism import MECHANISMS
from scrim.spec.population import PartialProtection, Protection
from scrim.spec.release import ReleaseSpec
from synth.journal import JournalMismatch, MemoryJournal
from synth.planning.accounting import MOST_CLASSES, FundedPlan, fund
from synth.planning.curve import Moved, delta_at, merge
from synth.planning.gaussian import MOST_SHARES, alike
from synth.planning.scale import gaussian_scale
from synth.planning.spending import OneShot
from synth.privacy import noise
from synth.privacy.accountant import NotPlanned
from synth.privacy.vault import Vault
from synth.queries import compile_workload
from synth.run import run
from tests.support import ADD_REMOVE, REPLACE_ONE, coded_schema, coded_table, random_rows

SIZES = {f"c{position}": 4 for position in range(14)}
SCHEMA = coded_schema(SIZES)
DELTA = 1 / 48842**2
PERSON = Protection(unit="person", max_rows_per_person=3)
ONCE = [{"name": "gaussian"}, {"name": "relaxed_projection"}, {"name": "generative_network"}]


def release(mechanism: dict[str, Any], **fields: Any) -> ReleaseSpec:
    return ReleaseSpec.model_validate(
        {
            "workload": [{"type": "marginals", "k": 2}],
            "mechanism": mechanism,
            "budget": {"epsilon": 1.0},
            **fields,
        }
    )


def funded(
    mechanism: dict[str, Any] | None = None,
    protection: Protection = REPLACE_ONE,
    **fields: Any,
) -> FundedPlan:
    options = {name: fields.pop(name) for name in ("units", "left") if name in fields}
    return fund(release(mechanism or ONCE[0], **fields), SCHEMA, protection, DELTA, **options)


# What can be computed in time ---------------------------------------------------------------------


@pytest.mark.parametrize("consistent", [True, False])
def test_columns_of_many_sizes_get_few_different_scales(consistent: bool) -> None:
    schema = coded_schema({f"c{size}": size for size in range(2, 20)})
    mechanism = {"name": "gaussian", "consistent": consistent}
    found = fund(release(mechanism), schema, REPLACE_ONE, DELTA)
    assert found.moves is not None and len(found.plan.measured) > 150
    assert len(merge(found.moves)) <= MOST_SHARES


def test_rounded_shares_are_nearly_optimal() -> None:
    # Variances a_i / s_i with the optimal shares s_i in proportion to the root of a_i.
    loads = [1.03**i for i in range(1000)]
    shares = [math.sqrt(load) for load in loads]
    rounded = alike(shares)
    assert len(set(rounded)) <= MOST_SHARES < len(set(shares))
    optimal, found = (
        math.fsum(each) * math.fsum(map(truediv, loads, each)) for each in (shares, rounded)
    )
    assert optimal < found < 1.05 * optimal


def test_few_shares_stay_as_they_are() -> None:
    assert alike([0.1, 0.2, 0.7]) == [0.1, 0.2, 0.7]


def test_operations_of_too_many_scales_keep_the_conversion() -> None:
    items = [{"type": "ranges", "k": 1, "count": n, "seed": 1} for n in range(1, MOST_CLASSES + 20)]
    for workload, is_exact in ((items[: MOST_CLASSES - 10], True), (items, False)):
        found = fund(release({"name": "gaussian"}, workload=workload), SCHEMA, REPLACE_ONE, DELTA)
        assert (found.moves is not None) == is_exact
        assert found.method(DELTA) == ("exact_gaussian" if is_exact else "zcdp")


# What an epsilon buys -------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "more"), [(0.1, 1.11), (1.0, 1.10), (10.0, 1.08)])
@pytest.mark.parametrize("mechanism", ONCE, ids=lambda m: str(m["name"]))
def test_an_epsilon_buys_more_by_the_exact_curve(
    mechanism: dict[str, Any], epsilon: float, more: float
) -> None:
    found = funded(mechanism, budget={"epsilon": epsilon})
    assert found.units > more * units_of_epsilon(epsilon, DELTA)
    assert found.method(DELTA) == "exact_gaussian"
    assert 0.999 * epsilon <= found.epsilon(DELTA) <= epsilon
    assert found.moves is not None and delta_at(found.moves, epsilon) <= DELTA


@settings(max_examples=40)
@given(
    st.floats(-2, 1.5),
    st.floats(-15, -4),
    st.sampled_from([ADD_REMOVE, REPLACE_ONE, PERSON]),
    st.sampled_from([1, 2]),
    st.none() | st.floats(0.01, 0.5),
)
def test_an_epsilon_is_never_exceeded_and_buys_no_less_than_before(
    exponent: float, power: float, protection: Protection, k: int, share: float | None
) -> None:
    epsilon, delta = 10**exponent, 10**power
    certify = None if share is None else {"share": share}
    spec = release(
        {"name": "relaxed_projection"},
        workload=[{"type": "marginals", "k": k}],
        budget={"epsilon": epsilon},
        outputs={"rows": 100, "certify": certify},
    )
    found = fund(spec, coded_schema({"a": 2, "b": 3}), protection, delta)
    assert found.units >= units_of_epsilon(epsilon, delta)
    assert found.epsilon(delta) <= epsilon
    if found.units > units_of_epsilon(epsilon, delta):
        assert found.moves is not None and delta_at(found.moves, epsilon) <= delta


def test_a_budget_of_rho_is_what_it_says_and_guarantees_a_smaller_epsilon() -> None:
    found = funded(budget={"rho": 0.02})
    assert found.units == UNITS_PER_RHO // 50
    assert found.epsilon(DELTA) < 0.96 * epsilon_of_units(found.units, DELTA)


def test_no_more_of_the_surplus_is_taken_than_is_left() -> None:
    before, most = units_of_epsilon(1.0, DELTA), funded().units
    assert funded(left=most + 1).units == most
    between = (before + most) // 2
    assert funded(left=between).units == between
    for left in (before, before - 1, 0, -1):
        assert funded(left=left).units == before


# What is reserved must be what the budget allows ----------------------------------------------------


def test_reserved_amounts_are_checked() -> None:
    most, before = funded().units, units_of_epsilon(1.0, DELTA)
    for units in (before, (before + most) // 2, most):
        assert funded(units=units).units == units
    for units in (before - 1, most + most // 1000):
        with pytest.raises(SpecError, match="reserved amount"):
            funded(units=units)


@pytest.mark.parametrize(
    ("mechanism", "budget"), [({"name": "gem"}, {"epsilon": 1.0}), (ONCE[0], {"rho": 0.02})]
)
def test_without_a_curve_another_amount_is_refused(
    mechanism: dict[str, Any], budget: dict[str, float]
) -> None:
    allowed = funded(mechanism, budget=budget).units
    assert funded(mechanism, budget=budget, units=allowed).units == allowed
    with pytest.raises(SpecError, match="reserved amount"):
        funded(mechanism, budget=budget, units=allowed + 1)


# Which releases have a curve ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism", [m for m in MECHANISMS if m.one_level], ids=lambda m: m.catalogue_name()
)
def test_only_releases_without_selections_have_a_curve(mechanism: Any) -> None:
    spec = release({"name": mechanism.catalogue_name()}, expected_rows=1000)
    public = SCHEMA if mechanism.needs_public_data else None
    small = coded_schema({"a": 2, "b": 2})
    found = fund(spec, small, REPLACE_ONE, DELTA, public=public and small)
    is_once = isinstance(found.plan.spending, OneShot)
    assert is_once == (found.operations is not None)
    if not is_once:
        assert found.method(DELTA) == "zcdp"
        assert found.units == units_of_epsilon(1.0, DELTA)
        assert found.epsilon(DELTA) == epsilon_of_units(found.units, DELTA)


def test_rounds_have_no_curve() -> None:
    assert funded({"name": "private_gsd"}).operations is not None
    assert funded({"name": "private_gsd", "mode": "adaptive"}).operations is None


def test_units_with_several_rows_have_a_curve_only_for_single_counts() -> None:
    assert funded(ONCE[1], protection=PERSON).operations is None
    once = Protection(unit="person", max_rows_per_person=1)
    assert funded(ONCE[1], protection=once).operations is not None
    single = coded_schema({"only": 1})
    spec = release(ONCE[0], workload=[{"type": "marginals", "k": 1}])
    found = fund(spec, single, PERSON, DELTA)
    assert found.moves is not None
    assert [(m.shift, m.coordinates) for m in found.moves] == [(3, 1), (3, 1)]


def test_what_the_worst_neighbour_moves() -> None:
    outputs = {"rows": 500, "certify": {"share": 0.1}}
    mechanism = {"name": "relaxed_projection", "measure": [{"type": "marginals", "k": 1}]}
    for protection, moved in ((REPLACE_ONE, 2), (ADD_REMOVE, 1)):
        found = funded(mechanism, protection, outputs=outputs)
        assert found.operations is not None
        kinds = Counter(
            (each.kind, each.moved.shift, each.moved.coordinates) for each in found.operations
        )
        rows = {("rows", 1, 1): 1} if protection is ADD_REMOVE else {}
        # The largest error, the total of 91 pairs of columns, and the totals of 14 columns.
        certified = {(500, 1), (500 * 91 * moved, 1), (500 * moved, 14)}
        expected = {("certify", *each): 1 for each in certified}
        assert kinds == {**rows, **expected, ("measure", 1, moved): 14}
    found = funded(protection=PartialProtection(relation="replace_one"))
    assert found.operations is not None and found.operations[0].kind == "rows"


# The door keeps to the plan -------------------------------------------------------------------------


@given(st.integers(1, 10**16), st.floats(0, 15).map(lambda exponent: int(10**exponent)))
def test_the_door_uses_the_planned_scale_and_its_price_fits(l2_squared: int, units: int) -> None:
    sampler = noise.gaussian(l2_squared, budget=units)
    assert sampler.scale == gaussian_scale(l2_squared, units)
    assert units * (1 - 1e-9) - 1 <= sampler.price <= units


SMALL = {"a": 3, "b": 2}


def small_release(**fields: Any) -> ReleaseSpec:
    certify = {"share": 0.1}
    return release(
        {"name": "relaxed_projection", "components": 2},
        outputs={"rows": 20, "certify": certify},
        **fields,
    )


@pytest.mark.random
@pytest.mark.parametrize("protection", [ADD_REMOVE, REPLACE_ONE], ids=lambda p: str(p.relation))
def test_a_release_performs_the_operations_of_its_plan(protection: Protection) -> None:
    schema, spec = coded_schema(SMALL), small_release()
    table = coded_table(schema, random_rows(SMALL, 100, seed=1))
    done = run(spec, table, protection=protection, delta=DELTA)
    planned = fund(spec, schema, protection, DELTA)
    found = Counter(
        (o["kind"], o["scale"]) for o in done.certificate["operations"] if o["rho_units"]
    )
    assert found == planned.scales
    assert done.certificate["accounting"] == "exact_gaussian"
    assert done.certificate["rho_units_reserved"] == planned.units
    for stated in ("epsilon_reserved", "epsilon"):
        assert done.certificate[stated][f"{DELTA:g}"] <= 1.0


@pytest.mark.random
def test_an_operation_that_is_not_planned_is_refused_before_the_rows_are_read() -> None:
    schema = coded_schema(SMALL)
    table = coded_table(schema, random_rows(SMALL, 50, seed=1))
    (block,) = compile_workload(release(ONCE[0]).workload, schema).blocks
    half, scale = UNITS_PER_RHO // 2, gaussian_scale(2, UNITS_PER_RHO // 2)
    journal = MemoryJournal()

    def door(planned: Counter[tuple[str, float]]) -> Vault:
        return Vault(
            table, protection=REPLACE_ONE, budget=UNITS_PER_RHO, journal=journal, planned=planned
        )

    vault = door(Counter({("measure", scale): 1}))
    with pytest.raises(NotPlanned, match="no further measure"):
        vault.measure(block, budget=half - 1)
    vault.measure(block, budget=half)
    with pytest.raises(NotPlanned, match="no further measure"):
        vault.measure(block, budget=half)
    assert len(journal.operations()) == 1
    # A resumed job has no more of them left than the first attempt had.
    again = door(Counter({("measure", scale): 1}))
    again.measure(block, budget=half)
    with pytest.raises(NotPlanned):
        again.measure(block, budget=half)
    with pytest.raises(JournalMismatch, match="another plan"):
        door(Counter({("measure", 2 * scale): 1}))


@pytest.mark.random
def test_a_mechanism_is_held_to_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the budget in rho would allow what it asks for."""

    def run_another(job: Any, spec: Any) -> None:
        job.door.measure(job.candidates.blocks[0], budget=job.plan.measure[0] // 2)

    monkeypatch.setattr("synth.fitting.run_mechanism", run_another)
    table = coded_table(coded_schema(SMALL), random_rows(SMALL, 50, seed=1))
    with pytest.raises(NotPlanned):
        run(small_release(), table, protection=REPLACE_ONE, delta=DELTA)


def test_shares_that_differ_are_classes_of_their_own() -> None:
    """A hundred scales in one release: the curve is still tight."""
    moves = tuple(Moved(70 + position, 1, 2) for position in range(91))
    rho = math.fsum(moved.rho for moved in moves)
    epsilon = rho + 5 * math.sqrt(2 * rho)
    same = (Moved(math.sqrt(182 / (2 * rho)), 1, 182),)
    assert delta_at(moves, epsilon) == pytest.approx(delta_at(same, epsilon), rel=1e-2)
