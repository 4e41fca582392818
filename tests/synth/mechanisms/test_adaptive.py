"""The adaptive loop with AIM's rules: what is selected, and when rounds get more budget."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from scrim.spec.budget import UNITS_PER_RHO
from scrim.spec.mechanism import AdaptiveSpec, Mwem
from scrim.spec.workload import Block, MarginalBlock
from synth.domain import Domain
from synth.door import TotalError
from synth.journal import MemoryJournal
from synth.measurements import Measurement
from synth.mechanisms.adaptive import SMOOTHED, adaptive_measurements, beyond_noise
from synth.mechanisms.base import Job
from synth.planning.spending import AnnealedRounds, Rounds
from synth.privacy.vault import Vault
from synth.queries import QuerySet, compile_blocks
from tests.support import REPLACE_ONE, coded_schema, coded_table

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
ASKED = [MarginalBlock(names) for names in (("a", "b", "c"), ("a", "b"), ("a",))]
CLOSURE = [MarginalBlock(names) for names in (("a",), ("b",), ("c",), ("a", "b"), ("a", "b", "c"))]
ROWS = 1000
ANNEALED = AnnealedRounds(
    public=(),
    opened=(),
    opening=0,
    rounds=30,
    per_round=1,
    select=10**9,
    measure=9 * 10**9,
    reserved=30 * 10**10,
)


def job(candidates: Sequence[Block], journal: MemoryJournal) -> Job[AnnealedRounds]:
    rows = [[i % 2, i % 3, i % 4] for i in range(ROWS)]
    vault = Vault(
        coded_table(SCHEMA, rows), protection=REPLACE_ONE, budget=UNITS_PER_RHO, journal=journal
    )
    return Job(
        door=vault,
        schema=SCHEMA,
        domain=Domain.of(SCHEMA),
        queries=compile_blocks(ASKED, SCHEMA),
        candidates=compile_blocks(candidates, SCHEMA),
        estimated_rows=ROWS,
        estimated_rows_sigma=0.0,
        plan=ANNEALED,
        progress=lambda done, total: None,
    )


def spec(**fields: Any) -> AdaptiveSpec:
    return Mwem.model_validate({"name": "mwem", "score": "total_error", **fields})


class Restless:
    """A learner whose answers move by a given total in every round, without improving."""

    def __init__(self, move: float) -> None:
        self._move = move
        self._rounds = 0

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        answers = np.zeros(queries.size)
        answers[queries.offsets[:-1]] = self._move / ROWS * (self._rounds % 2)
        return answers

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        self._rounds += 1


def score_of(
    job: Job[Rounds],
    spec: AdaptiveSpec,
    units: int,
    *,
    noise_power: float = 1.0,
    occupied: float = 0.0,
) -> TotalError:
    expected = np.arange(job.candidates.size, dtype=np.float64)
    score = beyond_noise(
        job.candidates,
        job,
        spec,
        units,
        expected=expected,
        noise_power=noise_power,
        occupied=occupied,
    )
    assert score is not None
    return score


class TestBeyondNoise:
    def score(self, units: int, **fields: Any) -> TotalError:
        return score_of(job(CLOSURE, MemoryJournal()), spec(**fields), units)

    def test_a_weight_counts_the_columns_that_are_asked_about(self) -> None:
        # a is in three asked marginals, b in two, c in one.
        assert self.score(1).weights.tolist() == [3, 2, 1, 3 + 2, 3 + 2 + 1]

    def test_weights_have_no_common_factor(self) -> None:
        pair = [MarginalBlock(("a", "b")), MarginalBlock(("a", "b", "c"))]
        weights = score_of(job(pair[:1], MemoryJournal()), spec(), 1).weights
        assert weights.tolist() == [1]
        assert score_of(job(pair, MemoryJournal()), spec(), 1).weights.tolist() == [5, 6]

    def test_unasked_marginals_have_some_weight(self) -> None:
        """A score of zero would beat those that are below zero."""
        alone = Job(
            **{
                **vars(job([MarginalBlock(("b",)), MarginalBlock(("c",))], MemoryJournal())),
                "queries": compile_blocks([MarginalBlock(("b",))], SCHEMA),
            }
        )
        assert score_of(alone, spec(), 1).weights.tolist() == [1, 1]

    @pytest.mark.random
    def test_an_offset_is_what_the_noise_of_a_measurement_adds_up_to(self) -> None:
        units = 10**9
        done = job(CLOSURE, MemoryJournal())
        sigma = done.door.measure(done.candidates.blocks[4], budget=units).sigma
        wanted = [math.sqrt(2 / math.pi) * sigma * cells for cells in (2, 3, 4, 6, 24)]
        assert self.score(units).offsets.tolist() == pytest.approx(wanted)

    def test_a_fit_that_smooths_leaves_less_of_the_noise(self) -> None:
        sharp = score_of(job(CLOSURE, MemoryJournal()), spec(), 10**9).offsets
        of = job(CLOSURE, MemoryJournal())
        found = score_of(of, spec(), 10**9, noise_power=SMOOTHED).offsets
        wanted = sharp / np.sqrt([2, 3, 4, 6, 24])
        assert found.tolist() == pytest.approx(wanted.tolist())

    @pytest.mark.random
    def test_cells_without_rows_do_not_count_as_noisy(self) -> None:
        """The model expects 0, 1, 2, ... rows in the cells of all candidates."""
        units = 10**9
        done = job(CLOSURE, MemoryJournal())
        sigma = done.door.measure(done.candidates.blocks[4], budget=units).sigma
        found = score_of(done, spec(), units, occupied=0.5).offsets
        edges = np.cumsum([0, 2, 3, 4, 6, 24])
        counts = [np.arange(a, b) for a, b in pairwise(edges)]
        cells = np.array([(x / (x + sigma / 2)).sum() for x in counts])
        assert found.tolist() == pytest.approx((math.sqrt(2 / math.pi) * sigma * cells).tolist())

    def test_single_queries_have_the_weight_of_their_marginal_and_their_own_noise(self) -> None:
        score = self.score(UNITS_PER_RHO, select="queries")
        sizes = [2, 3, 4, 6, 24]
        assert score.weights.tolist() == np.repeat([3, 2, 1, 5, 6], sizes).tolist()
        # One query moves by one: sigma is sqrt(1/2) at rho 1.
        assert score.offsets.tolist() == pytest.approx([math.sqrt(1 / math.pi)] * sum(sizes))


def prices(move: float, **fields: Any) -> list[tuple[int, int]]:
    """The number of rounds at each price of selection, in order."""
    journal = MemoryJournal()
    adaptive_measurements(job(CLOSURE[:1], journal), spec(**fields), Restless(move))
    selects = [o.price for o in journal.operations() if o.kind == "select"]
    return [(price, len(list(same))) for price, same in groupby(selects)]


@pytest.mark.random
def test_a_model_that_keeps_moving_has_every_round() -> None:
    assert prices(move=1000.0) == [(10**9, 30)]


@pytest.mark.random
def test_a_model_that_stands_still_has_four_times_the_budget_in_every_round() -> None:
    found = prices(move=0.0)
    # 1, 4 and 16 of 30; and what is left.
    assert [count for _, count in found] == [1, 1, 1, 1][: len(found)]
    assert found[1][0] == pytest.approx(4 * 10**9, rel=1e-6)
    assert sum(price * count for price, count in found) == pytest.approx(30 * 10**9, rel=1e-6)


@pytest.mark.random
def test_what_noise_would_have_moved_is_the_limit() -> None:
    sigma = math.sqrt(2 / (2 * 0.009))
    limit = math.sqrt(2 / math.pi) * sigma * 2
    assert prices(move=1.01 * limit)[0] == (10**9, 30)
    assert prices(move=0.99 * limit)[0] == (10**9, 1)


class TestPublicCounts:
    """A column with a single value does not depend on any unit: its counts are public."""

    SCHEMA = coded_schema({"a": 2, "only": 1})
    PLAN = replace(ANNEALED, public=(MarginalBlock(("only",)),))

    def operations(self, candidates: Sequence[Block]) -> list[tuple[str, str, int]]:
        journal = MemoryJournal()
        vault = Vault(
            coded_table(self.SCHEMA, [[i % 2, 0] for i in range(ROWS)]),
            protection=REPLACE_ONE,
            budget=UNITS_PER_RHO,
            journal=journal,
        )
        done = replace(
            job(CLOSURE, MemoryJournal()),
            door=vault,
            schema=self.SCHEMA,
            candidates=compile_blocks(candidates, self.SCHEMA),
            plan=self.PLAN,
        )
        adaptive_measurements(done, Mwem(name="mwem"), Restless(0.0))
        return [(o.kind, o.asked, o.price) for o in journal.operations()]

    @pytest.mark.random
    def test_they_are_read_once_for_nothing_and_never_chosen(self) -> None:
        both = self.operations([MarginalBlock(("only",)), MarginalBlock(("a",))])
        assert both[0] == ("measure", "only", 0)
        assert {asked for _, asked, _ in both[1:]} == {"1 of 1 marginals", "a"}

    def test_where_all_counts_are_public_there_are_no_rounds(self) -> None:
        assert self.operations([MarginalBlock(("only",))]) == [("measure", "only", 0)]
