"""T7, record and replay: with the same draws, a neighbouring table gives the same release, bit by bit.

Every mechanism, every unit and relation. These tables are passed to the door; those of
tests/worker/test_replay.py start from uploaded files.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from scrim.spec.population import Protection
from synth.privacy import vault
from synth.queries import QuerySet, compile_workload
from synth.run import JobProgress
from synth.table import Table
from tests.support import ADD_REMOVE, PROTECTIONS, coded_table
from tests.synth.linked import Household, household, linked_table
from tests.synth.mechanism_settings import CONTRACT
from tests.synth.replay import check_replay, samplers
from tests.synth.test_mechanism_contract import (
    HOUSEHOLDS,
    LINKED,
    ROWS,
    SCHEMA,
    ask,
    carry_out,
    is_linked,
    outputs,
)

# What is checked holds whatever is drawn.
pytestmark = pytest.mark.random

SCREEN = {"share": 0.1, "max_error": 0.9}
REPLAYED = CONTRACT | {
    "pmw_pub, screened": CONTRACT["pmw_pub"] | {"screen": SCREEN},
    "pep_pub, screened": CONTRACT["pep_pub"] | {"screen": SCREEN},
    "gem_pub, screened": CONTRACT["gem_pub"] | {"screen": SCREEN},
    "pmw_pub, too far": CONTRACT["pmw_pub"] | {"screen": SCREEN | {"max_error": 0.001}},
}
LINKED_PROTECTIONS = (
    *(household(3, relation) for relation in ("add_remove", "replace_one")),
    *PROTECTIONS[2:4],
)


def protections_of(mechanism: dict[str, Any]) -> tuple[Protection, ...]:
    return LINKED_PROTECTIONS if is_linked(mechanism) else PROTECTIONS


CASES = [
    pytest.param(mechanism, protection, id=f"{name}-{protection.unit}-{protection.relation}")
    for name, mechanism in REPLAYED.items()
    for protection in protections_of(mechanism)
]


def neighbours(protection: Protection) -> tuple[Table, Table]:
    """The rows of one unit are added, or replaced by another's; the unit has the most rows allowed."""
    own = [[1, 2, 3]] * protection.max_rows_per_unit
    replaced = 0 if protection.relation == "add_remove" else 1
    return coded_table(SCHEMA, ROWS), coded_table(SCHEMA, [*ROWS[replaced:], *own])


def linked_neighbours(protection: Protection) -> tuple[Table, Table]:
    """The same of groups, or of people, who own a row in each of two groups."""
    base: list[Household] = [*HOUSEHOLDS, ((0, 0), ((0,), (1,))), ((1, 1), ((2,),))]
    if protection.unit == "household":
        replaced = 0 if protection.relation == "add_remove" else 1
        new: Household = ((1, 2), ((3,),) * 3)
        return linked_table(LINKED, base), linked_table(LINKED, [*base[replaced:], new])
    *others, (first, members), (second, alone) = base
    if protection.relation == "add_remove":
        moved = [(first, (*members, (3,))), (second, (*alone, (3,)))]
    else:
        moved = [(first, ((3,), *members[1:])), (second, ((3,),))]
    return linked_table(LINKED, base), linked_table(LINKED, [*others, *moved])


def released(
    mechanism: dict[str, Any], table: Table, protection: Protection
) -> Callable[[], tuple[Any, ...]]:
    """Run a release, certified if it has rows; returns all its outputs."""
    certified = {"rows": 50, "certify": {"share": 0.1}}
    changes: dict[str, Any] = {} if mechanism["name"] == "gaussian" else {"outputs": certified}
    spec = ask(mechanism, **changes)

    def carry() -> tuple[Any, ...]:
        told: list[JobProgress] = []
        done = carry_out(spec, table, protection=protection, progress=told.append)
        measured = [(m.query.name, m.values.tobytes(), m.sigma) for m in done.measurements]
        return *outputs(done), told, measured

    return carry


@pytest.mark.parametrize(("mechanism", "protection"), CASES)
def test_the_same_draws_give_the_same_release(
    mechanism: dict[str, Any], protection: Protection
) -> None:
    pair = linked_neighbours if is_linked(mechanism) else neighbours
    table, neighbour = pair(protection)
    seen = check_replay(
        released(mechanism, table, protection), released(mechanism, neighbour, protection)
    )
    assert seen.draws


@pytest.mark.parametrize("name", REPLAYED)
def test_nor_does_it_show_that_a_table_is_empty(name: str) -> None:
    mechanism = REPLAYED[name]
    if is_linked(mechanism):
        empty, one = linked_table(LINKED, []), linked_table(LINKED, [((1, 2), ((3,), (0,)))])
        protection = LINKED_PROTECTIONS[0]
    else:
        empty, one, protection = (
            coded_table(SCHEMA, []),
            coded_table(SCHEMA, [[1, 2, 3]]),
            ADD_REMOVE,
        )
    check_replay(released(mechanism, empty, protection), released(mechanism, one, protection))


def test_answers_to_later_questions_are_the_same() -> None:
    """They come from the released model, whose bytes are the same, as are newly drawn rows."""
    mechanism = CONTRACT["mwem"]
    spec = ask(mechanism)
    later = ask(mechanism, k=1).workload

    def question(table: Table) -> Callable[[], Any]:
        def carry() -> Any:
            model = carry_out(spec, table).model
            drawn = {name: column.tobytes() for name, column in model.sample(9, seed=3).items()}
            return list(model.answer(later).lines()), drawn

        return carry

    table, neighbour = neighbours(ADD_REMOVE)
    check_replay(question(table), question(neighbour))


def test_every_sampler_of_the_door_is_taped() -> None:
    used = set(re.findall(r"noise\.([a-z]\w*)\(", inspect.getsource(vault)))
    assert used and used <= set(samplers())


def test_it_finds_what_was_not_paid_for() -> None:
    """Three rows are added where one was priced; and a release reveals the number of rows."""
    table, neighbour = coded_table(SCHEMA, ROWS), coded_table(SCHEMA, [*ROWS, *[[1, 2, 3]] * 3])
    mechanism = CONTRACT["mwem"]
    with pytest.raises(AssertionError, match=r"0: .l2_squared 9, paid for 1"):
        check_replay(
            released(mechanism, table, ADD_REMOVE), released(mechanism, neighbour, ADD_REMOVE)
        )
    queries = compile_workload(ask(mechanism).workload, SCHEMA)

    def telling(private: Table) -> Callable[[], int]:
        return lambda: int(QuerySet([queries.blocks[0]]).count(private).sum())

    with pytest.raises(AssertionError, match="what leaves differs"):
        check_replay(telling(table), telling(neighbour))
