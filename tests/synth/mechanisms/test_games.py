"""The release game: the cost of draws, the best records, and what generators may see."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.spec.budget import UNITS_PER_RHO, rho_of_units
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from synth.domain import Domain
from synth.journal import MemoryJournal
from synth.mechanisms import query_gan
from synth.mechanisms.base import Job
from synth.mechanisms.best_response import BestResponses
from synth.mechanisms.game import _rate
from synth.models.product import ProductMixture
from synth.models.support import Support
from synth.planning.draws import even_draws, growing_draws, squares_below
from synth.planning.plan import plan
from synth.planning.spending import Draws
from synth.privacy import noise
from synth.privacy.noise import FIXED_POINT
from synth.privacy.vault import Vault
from synth.queries import QuerySet, compile_workload
from synth.run import FinishedRelease, run
from tests.support import (
    ADD_REMOVE,
    PROTECTIONS,
    coded_schema,
    coded_table,
    random_rows,
    release,
)

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
ROWS = random_rows(SIZES, 60)
DRAWN = {
    "dual_query": {"name": "dual_query", "rounds": 6, "samples": 3},
    "fem": {"name": "fem", "rounds": 6, "per_round": 3, "samples": 1},
    "query_gan": {"name": "query_gan", "rounds": 6, "per_round": 3, "components": 5},
}


def carry_out(spec: ReleaseSpec, journal: MemoryJournal, protection: Protection) -> FinishedRelease:
    return run(spec, coded_table(SCHEMA, ROWS), journal, protection=protection, delta=1e-9)


def new_job(planned: Draws, rows: int, protection: Protection) -> Job[Draws]:
    """A job about a table without rows, after that many were estimated."""
    queries = QuerySet([])
    return Job(
        door=Vault(
            coded_table(SCHEMA, []), protection=protection, budget=0, journal=MemoryJournal()
        ),
        schema=SCHEMA,
        domain=Domain.of(SCHEMA),
        queries=queries,
        candidates=queries,
        estimated_rows=rows,
        estimated_rows_sigma=0.0,
        plan=planned,
        progress=lambda done, total: None,
    )


@given(
    st.integers(2, 2000),
    st.integers(1, 1000),
    st.integers(1, 10**15),
    st.integers(1, 10**9),
    st.sampled_from(PROTECTIONS),
)
def test_every_draw_costs_what_was_planned_whatever_number_of_rows_was_measured(
    rounds: int, per_round: int, units: int, rows: int, protection: Protection
) -> None:
    """The plan's total never exceeds the budget, and no draw's price its part of the plan."""
    try:
        planned = growing_draws(rounds, per_round, units)
    except SpecError as refused:
        assert "too small" in str(refused)
        assert units < per_round * squares_below(rounds)
        return
    # docs/privacy.md, section 4: s eta^2 T(T-1)(2T-1) / (12 n^2), with eta^2 / (2 n^2) for one draw.
    assert sum(planned.prices) * 6 == planned.prices[1] * rounds * (rounds - 1) * (2 * rounds - 1)
    assert planned.per_round * sum(planned.prices) <= units
    job = new_job(planned, rows, protection)
    for past in {1, rounds // 2, rounds - 1} - {0}:
        rate = _rate(job, planned.prices[past], past)
        sampler = noise.gumbel_draws(
            past * protection.max_rows_per_unit * FIXED_POINT, rows * FIXED_POINT / rate, per_round
        )
        assert sampler.price <= per_round * planned.prices[past]
        assert sampler.price >= per_round * (planned.prices[past] - 1) * (1 - 1e-5)


@given(st.integers(1, 2000), st.integers(1, 1000), st.integers(1, 10**15))
def test_even_draws_count_every_round_and_every_draw(
    rounds: int, per_round: int, units: int
) -> None:
    try:
        planned = even_draws(rounds, per_round, units)
    except SpecError:
        assert units < rounds * per_round
        return
    spent = per_round * sum(planned.prices)
    assert units - rounds * per_round < spent <= units


@pytest.mark.random
@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: f"{p.unit}-{p.relation}")
@pytest.mark.parametrize("name", DRAWN)
def test_prices_follow_from_the_definition(name: str, protection: Protection) -> None:
    """Each draw's price again, from its recorded scale: rho = (past c)^2 / (2 b^2) for each draw.

    Copies of likely candidates add two steps of a score's fixed point to what it moves.
    """
    spec, journal = release(DRAWN[name]), MemoryJournal()
    carry_out(spec, journal, protection)
    hedged = [o for o in journal.operations() if o.kind == "hedge"]
    assert len(hedged) == 6
    for turn, operation in enumerate(hedged):
        past = 1 if name == "fem" else turn
        scale = operation.scale / FIXED_POINT
        moved = past and past * protection.max_rows_per_unit + 2 / FIXED_POINT
        assert rho_of_units(operation.price) == pytest.approx(
            3 * moved**2 / (2 * scale**2), rel=1e-9
        )
    assert sum(o.price for o in hedged) == pytest.approx(
        plan(spec, SCHEMA, protection, UNITS_PER_RHO // 2).split.mechanism, rel=1e-5
    )


@pytest.mark.parametrize("name", ["dual_query", "query_gan"])
def test_as_many_rounds_as_the_budget_buys_at_the_wanted_rate(name: str) -> None:
    spec = release({"name": name, "rate": 2.0}, expected_rows=5000)
    planned = plan(spec, SCHEMA, ADD_REMOVE, UNITS_PER_RHO // 2)
    spending = planned.spending
    assert isinstance(spending, Draws)
    rate = 5000 * math.sqrt(2 * rho_of_units(spending.prices[1]))
    assert 2.0 <= rate < 2.1
    more = release({"name": name, "rate": 2.0}, expected_rows=10_000)
    again = plan(more, SCHEMA, ADD_REMOVE, UNITS_PER_RHO // 2).spending
    assert isinstance(again, Draws) and len(again.prices) > len(spending.prices)


@pytest.mark.parametrize(
    "mechanism",
    [
        {"name": "dual_query", "rounds": 10_000, "samples": 10_000},
        {"name": "fem", "rounds": 10_000, "per_round": 10_000},
        {"name": "query_gan", "rounds": 10_000, "per_round": 1000},
    ],
    ids=lambda m: m["name"],
)
def test_a_budget_too_small_for_its_rounds_is_refused(mechanism: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=r"too small for 10000 rounds of \d+ draws; ask for fewer"):
        plan(release(mechanism, budget={"rho": 1e-6}), SCHEMA, ADD_REMOVE, 10**6)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"opening_share": 0.1}, "opening_share"),
        ({"selection_share": 0.5}, "selection_share"),
        ({"critic": "measured", "rate": 3.0}, "rate"),
    ],
)
def test_settings_of_the_other_critic_are_refused(changes: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} has no effect"):
        release({"name": "query_gan", **changes})


@pytest.mark.parametrize("name", DRAWN)
def test_halfspaces_are_refused(name: str) -> None:
    asked = [{"type": "halfspaces", "count": 5, "seed": 0}]
    with pytest.raises(SpecError, match="cannot answer halfspaces"):
        plan(release(DRAWN[name], workload=asked), SCHEMA, ADD_REMOVE, UNITS_PER_RHO)


@pytest.mark.parametrize("perturbed", [False, True])
@pytest.mark.parametrize("workload", ["marginals", "ranges"])
def test_no_record_is_better_than_the_best_response(workload: str, perturbed: bool) -> None:
    items = {
        "marginals": {"type": "marginals", "k": 2},
        "ranges": {"type": "ranges", "k": 2, "count": 30, "seed": 3},
    }
    spec = release({"name": "dual_query"}, workload=[items[workload]])
    queries, domain = compile_workload(spec.workload, SCHEMA), Domain.of(SCHEMA)
    everything = list(product(*(range(size) for size in domain.sizes)))
    columns = dict(zip(domain.names, np.array(everything).T, strict=True))
    records = [
        Support.of_rows(domain, {n: column[[i]] for n, column in columns.items()})
        for i in range(len(everything))
    ]
    answers = np.stack([record.answer(queries).values for record in records])
    rng = np.random.default_rng(5)
    responses = BestResponses(SCHEMA, queries, effort=1.0)
    for _ in range(10):
        critics = {int(q): int(rng.integers(-3, 4)) for q in rng.integers(queries.size, size=12)}
        codes = {n: rng.integers(0, 3000, size) for n, size in domain.size_of.items()}
        weights = np.zeros(queries.size)
        weights[list(critics)] = list(critics.values())
        values = 1000 * answers @ weights
        if perturbed:
            values += sum(codes[n][columns[n]] for n in domain.names)
        found = responses.add(critics, codes if perturbed else None)
        record = tuple(int(found.codes[n][0]) for n in domain.names)
        assert values[everything.index(record)] == pytest.approx(values.max())
    report = responses.report()
    assert report == {"best_responses": 10, "proved_best": 10, "largest_gap": 0.0}


def test_a_record_that_took_too_much_work_is_reported() -> None:
    queries = compile_workload(release({"name": "fem"}).workload, SCHEMA)
    responses = BestResponses(SCHEMA, queries, effort=1e-9)
    responses.add({query: (-1) ** query for query in range(queries.size)})
    report = responses.report()
    assert report["proved_best"] == 0
    assert report["largest_gap"] > 0


@pytest.mark.random
def test_the_certificate_tells_how_close_the_records_are() -> None:
    done = carry_out(release(DRAWN["dual_query"]), MemoryJournal(), ADD_REMOVE)
    assert done.certificate["mechanism_report"] == {
        "best_responses": 6,
        "proved_best": 6,
        "largest_gap": 0.0,
    }
    assert (
        carry_out(release({"name": "mwem"}), MemoryJournal(), ADD_REMOVE).certificate[
            "mechanism_report"
        ]
        is None
    )


@pytest.mark.random
@pytest.mark.parametrize(("kept", "components"), [(4000, 6 * 5), (12, 6 * 2), (1, 6)])
def test_of_each_generator_as_much_is_kept_as_the_mixture_may_hold(
    kept: int, components: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_gan, "KEPT_COMPONENTS", kept)
    done = carry_out(release(DRAWN["query_gan"]), MemoryJournal(), ADD_REMOVE)
    mixture = done.model.model
    assert isinstance(mixture, ProductMixture)
    assert len(mixture.probabilities) == components
