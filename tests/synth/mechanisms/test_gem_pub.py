"""GEM-Pub: what it learns from public rows, and that it learns it once."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest

from scrim.spec.budget import UNITS_PER_RHO
from scrim.spec.mechanism import GemPub
from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.journal import MemoryJournal
from synth.mechanisms import gem_pub
from synth.mechanisms.base import Job
from synth.models.product import ProductMixture
from synth.models.support import Support
from synth.planning.plan import plan
from synth.planning.spending import Rounds
from synth.queries import Marginal, QuerySet, compile_blocks, compile_workload
from synth.run import FinishedRelease, run
from synth.table import Table
from tests.support import ADD_REMOVE, coded_schema, coded_table, random_rows, release

SIZES = {"a": 3, "b": 3, "c": 3}
SCHEMA = coded_schema(SIZES)
PUBLIC_ROWS = random_rows(SIZES, 400, seed=4)
SETTINGS: dict[str, Any] = {
    "name": "gem_pub",
    "components": 30,
    "latent": 4,
    "hidden": [16],
    "learning_rate": 0.02,
    "steps": 5,
    "rounds": 1,
    "pretraining_steps": 100,
}


class RecordingCache:
    """A cache in memory that records its calls."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.asked: list[str] = []

    def get(self, key: str) -> bytes | None:
        self.asked.append(key)
        return self.held.get(key)

    def put(self, key: str, content: bytes) -> None:
        assert key not in self.held
        self.held[key] = content


def public_with(*names: str, rows: Sequence[Sequence[int]] = PUBLIC_ROWS) -> Table:
    """Public rows that have these columns alone."""
    schema = Schema(columns=[column for column in SCHEMA.columns if column.name in names])
    chunks = coded_table(SCHEMA, rows).chunks()
    return Table(schema, [{name: chunk[name] for name in names} for chunk in chunks])


ALL = public_with(*SIZES)


def new_job(
    settings: dict[str, Any], public: Table, cache: RecordingCache | None = None, **changes: Any
) -> tuple[Job[Rounds], GemPub]:
    """A job that can be trained on public rows only, without a door to private rows."""
    spec = release(settings, **changes)
    planned = plan(spec, SCHEMA, ADD_REMOVE, UNITS_PER_RHO, public=public.schema)
    assert isinstance(planned.spending, Rounds)
    job = Job(
        door=cast(Any, None),
        schema=SCHEMA,
        domain=Domain.of(SCHEMA),
        queries=compile_workload(spec.workload, SCHEMA),
        candidates=compile_blocks(planned.measured, SCHEMA),
        estimated_rows=400,
        estimated_rows_sigma=1.0,
        plan=planned.spending,
        progress=lambda done, total: None,
        public=public,
        cache=cache,
    )
    assert isinstance(spec.mechanism, GemPub)
    return job, spec.mechanism


def learn(public: Table) -> ProductMixture:
    job, spec = new_job(SETTINGS, public)
    return gem_pub.pretrained(job, spec, public).released()


def distance(mixture: ProductMixture, public: Table, *names: str) -> float:
    queries = QuerySet([Marginal.of(names, Domain.of(SCHEMA))])
    expected = queries.on_support(Support.of(public)).numpy()
    return float(np.abs(mixture.answer(queries).values - expected).max())


def independent_distance(public: Table, *names: str) -> float:
    """How far the product of two one-way marginals is from the pair."""
    support = Support.of(public)
    product = support.marginal(names[:1])[:, None] * support.marginal(names[1:])[None, :]
    return float((product - support.marginal(names)).abs().max())


@pytest.mark.parametrize("names", [("a", "b", "c"), ("a", "b"), ("b", "c")], ids=",".join)
def test_public_pairs_are_learnt_where_public_data_have_them(names: tuple[str, ...]) -> None:
    public = public_with(*names)
    mixture = learn(public)
    for pair in pairwise(names):
        assert independent_distance(public, *pair) > 0.08
        assert distance(mixture, public, *pair) < 0.03


def test_a_single_public_column_teaches_its_shares() -> None:
    rows = [[0, 0, 0]] * 70 + [[1, 0, 0]] * 20 + [[2, 0, 0]] * 10
    public = public_with("a", rows=rows)
    mixture = learn(public)
    assert distance(mixture, public, "a") < 0.05
    # The public rows say nothing about the other columns.
    for name in ("b", "c"):
        assert distance(mixture, public_with(name, rows=[[i] * 3 for i in range(3)]), name) < 0.15


def keys(public: Table, settings: dict[str, Any] = SETTINGS, **changes: Any) -> list[str]:
    cache = RecordingCache()
    quick = settings | {"pretraining_steps": min(settings["pretraining_steps"], 2)}
    job, spec = new_job(quick, public, cache, **changes)
    gem_pub.pretrained(job, spec, public)
    assert cache.asked == list(cache.held)
    return cache.asked


def test_the_same_rows_have_the_same_key() -> None:
    backwards = public_with(*SIZES, rows=PUBLIC_ROWS[::-1])
    assert keys(ALL) == keys(public_with(*SIZES)) == keys(backwards)


@pytest.mark.parametrize(
    "public",
    [
        pytest.param(public_with(*SIZES, rows=random_rows(SIZES, 400, seed=5)), id="other rows"),
        pytest.param(public_with("a", "b"), id="fewer columns"),
    ],
)
def test_other_public_data_have_another_key(public: Table) -> None:
    assert keys(public) != keys(ALL)


def test_the_same_shares_of_more_rows_have_another_key() -> None:
    """More rows have smaller sampling errors, so more is learnt from them."""
    rows = PUBLIC_ROWS[:256]  # a power of two: the shares are the same to the last bit
    assert keys(public_with(*SIZES, rows=rows)) != keys(public_with(*SIZES, rows=rows * 2))


def test_the_same_codes_of_another_column_have_another_key() -> None:
    same = [[row[0]] * 3 for row in PUBLIC_ROWS]
    assert keys(public_with("a", rows=same)) != keys(public_with("b", rows=same))


@pytest.mark.parametrize(
    "changes",
    [
        {"pretraining_steps": 1},
        {"learning_rate": 0.01},
        {"components": 31},
        {"latent": 5},
        {"hidden": [16, 16]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_another_training_has_another_key(changes: dict[str, Any]) -> None:
    assert keys(ALL, SETTINGS | changes) != keys(ALL)


def test_another_workload_has_another_key() -> None:
    assert keys(ALL, workload=[{"type": "marginals", "k": 3}]) != keys(ALL)


def test_what_is_done_with_private_rows_leaves_the_key_alone() -> None:
    changed = SETTINGS | {"rounds": 3, "steps": 9, "selection_share": 0.5}
    assert keys(ALL, changed, budget={"rho": 2.0}) == keys(ALL)


def carry_out(journal: MemoryJournal, cache: RecordingCache | None) -> FinishedRelease:
    table = coded_table(SCHEMA, random_rows(SIZES, 300))
    return run(
        release(SETTINGS),
        table,
        journal,
        protection=ADD_REMOVE,
        delta=1e-9,
        public=ALL,
        device="cpu",
        cache=cache,
    )


@pytest.mark.random
def test_a_second_release_trains_nothing_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    journal, cache = MemoryJournal(), RecordingCache()
    fresh = carry_out(journal, cache)
    uncached = carry_out(MemoryJournal(journal.operations()), None)

    def refuse(*_: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(gem_pub, "_train", refuse)
    cached = carry_out(MemoryJournal(journal.operations()), cache)
    assert len(cache.held) == 1 and len(set(cache.asked)) == 1 and len(cache.asked) == 2
    for other in (uncached, cached):
        assert other.model.to_bytes() == fresh.model.to_bytes()
