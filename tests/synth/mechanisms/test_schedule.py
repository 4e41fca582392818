"""How much each round may spend."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.spec.workload import MarginalBlock
from synth.door import Door
from synth.journal import MemoryJournal
from synth.mechanisms.schedule import RoundShare, schedule_of
from synth.planning.spending import AnnealedRounds, Rounds
from synth.privacy.vault import Vault
from synth.queries import QuerySet, compile_blocks
from tests.support import REPLACE_ONE, coded_schema, coded_table

SCHEMA = coded_schema({"a": 2, "b": 3})
QUERIES = compile_blocks([MarginalBlock(("a",)), MarginalBlock(("b",))], SCHEMA)
RESERVED = 10**9


def door(budget: int = RESERVED, journal: MemoryJournal | None = None) -> Vault:
    table = coded_table(SCHEMA, [[0, 0], [1, 2]])
    journal = MemoryJournal() if journal is None else journal
    return Vault(table, protection=REPLACE_ONE, budget=budget, journal=journal)


def annealed(rounds: int, per_round: int = 1) -> AnnealedRounds:
    each = RESERVED // (rounds * per_round)
    return AnnealedRounds(
        public=(),
        opened=(),
        opening=0,
        rounds=rounds,
        per_round=per_round,
        select=each // 10 * per_round,
        measure=each - each // 10,
        reserved=RESERVED,
    )


def spend(at: Door, share: RoundShare, queries: QuerySet = QUERIES, per_round: int = 1) -> None:
    """One round."""
    chosen = at.select(queries, np.zeros(queries.size), budget=share.select, k=per_round)
    for index in chosen:
        at.measure(queries.candidate(index, "marginals"), budget=share.measure)


def carry_out(
    plan: Rounds, at: Door, learnt: list[bool], *, per_round: int = 1
) -> list[RoundShare]:
    """The shares of all rounds; rounds that are not listed improved nothing."""
    schedule, shares = schedule_of(plan, at, per_round=per_round), []
    while schedule.rounds_left:
        shares.append(schedule.next_share())
        spend(at, shares[-1], per_round=per_round)
        schedule.note(learnt=len(shares) <= len(learnt) and learnt[len(shares) - 1])
    return shares


@pytest.mark.random
def test_equal_rounds_stay_equal_whatever_they_teach() -> None:
    plan = Rounds(
        public=(), opened=(), opening=0, rounds=3, per_round=1, select=10**7, measure=10**8
    )
    assert carry_out(plan, door(), [True, False]) == [RoundShare(10**7, 10**8)] * 3


@pytest.mark.random
def test_rounds_that_all_teach_something_are_as_many_as_planned() -> None:
    plan, at = annealed(8), door()
    shares = carry_out(plan, at, [True] * 8)
    assert len(shares) == 8
    assert shares[:7] == [RoundShare(plan.select, plan.measure)] * 7
    assert at.spent == pytest.approx(RESERVED, abs=20)


@pytest.mark.random
def test_a_round_that_teaches_only_noise_makes_the_next_four_times_as_dear() -> None:
    plan = annealed(40)
    first = RoundShare(plan.select, plan.measure)
    shares = carry_out(plan, door(), [True, False, True, False, True])
    dearer = RoundShare(4 * first.select, 4 * first.measure)
    assert shares[:4] == [first, first, dearer, dearer]
    # Sixteen of the remaining 30 of forty pay for one such round, which then gets all 30.
    left = RESERVED - 10 * (first.select + first.measure)
    assert len(shares) == 5
    assert shares[4].select + shares[4].measure == pytest.approx(left, abs=20)
    assert shares[4].select == pytest.approx(left / 10, rel=1e-6)


@pytest.mark.random
@given(st.integers(1, 60), st.integers(1, 2), st.lists(st.booleans(), max_size=60))
def test_everything_reserved_is_spent_and_no_more(
    rounds: int, per_round: int, learnt: list[bool]
) -> None:
    at = door()
    shares = carry_out(annealed(rounds, per_round), at, learnt, per_round=per_round)
    assert 1 <= len(shares) <= rounds
    assert RESERVED - 4 * len(shares) - 10 <= at.spent <= RESERVED


@pytest.mark.random
def test_a_resumed_job_counts_what_its_journal_says_was_spent() -> None:
    """Another machine may train a different model; the reserve is the same."""
    plan, journal = annealed(40), MemoryJournal()
    carry_out(plan, door(journal=journal), [True, False, False])
    for length in range(len(journal.operations()) + 1):
        resumed = MemoryJournal(journal.operations()[:length])
        at = door(journal=resumed)
        carry_out(plan, at, [True] * 40)
        at.close()
        assert RESERVED - 200 <= at.spent == at.used <= RESERVED


@pytest.mark.random
def test_free_measurements_end_as_well() -> None:
    """A column with a single value has a public count: nothing but selections is paid for."""
    schema = coded_schema({"only": 1})
    queries = compile_blocks([MarginalBlock(("only",))], schema)
    at = Vault(
        coded_table(schema, [[0]]), protection=REPLACE_ONE, budget=RESERVED, journal=MemoryJournal()
    )
    schedule, rounds = schedule_of(annealed(10), at, per_round=1), 0
    while schedule.rounds_left:
        spend(at, schedule.next_share(), queries)
        schedule.note(learnt=False)
        rounds += 1
    assert rounds <= 10
    assert at.spent <= RESERVED
