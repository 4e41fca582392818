"""Forecasts of memory: from public numbers, and near what a fit really takes."""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrim.spec.budget import UNITS_PER_RHO
from scrim.spec.workload import MarginalBlock
from synth.planning.memory import (
    ANSWER_BYTES,
    CLIQUE_COPIES,
    ELIMINATED_TABLES,
    FIT_STEP_COPIES,
    FIT_STEPS,
    MAX_ENTRIES,
    drawn_bytes,
    joint_table_bytes,
    mixture_draw_bytes,
)
from synth.planning.plan import plan
from synth.run import run
from tests.fresh_noise import announce_noise
from tests.support import ADD_REMOVE, coded_schema, coded_table, random_rows, release
from tests.synth.linked import household, linked_table, random_households, two_level_schema

PAIRS = [{"type": "marginals", "k": 2}]
TRIPLES = [{"type": "marginals", "k": 3}]
ROOT = Path(__file__).parents[3]

# Prints how far the peak of a fit is above that of a small one of the same kind, in bytes. Only private
# memory counts: the system may drop pages of libraries, and read them again, at any time.
MEASURE = """
import json, sys, threading
from pathlib import Path
from synth.queries import compile_workload
from synth.run import run
from tests.support import ADD_REMOVE, coded_schema, coded_table, random_rows, release

from tests.synth.linked import household, linked_table, random_households, two_level_schema

order = json.loads(sys.argv[1])


def private_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


def peak_of(action):
    done, peak = threading.Event(), [private_bytes()]

    def watch():
        while not done.wait(0.002):
            peak[0] = max(peak[0], private_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        action()
    finally:
        done.set()
        watcher.join()
    return peak[0]


def fit(sizes, of_groups, **changes):
    if of_groups is None:
        schema, protection = coded_schema(sizes), ADD_REMOVE
        table = coded_table(schema, random_rows(sizes, 200))
    else:
        schema, protection = two_level_schema(of_groups, sizes, 3).linked, household(3)
        table = linked_table(schema, random_households(schema, 100))
    spec = release(
        order["mechanism"] | changes,
        workload=order["workload"],
        budget={"rho": 100.0},
        outputs={"answers": False},
    )
    done = run(spec, table, protection=protection, delta=1e-9, device="cpu")
    if order["answered"]:
        done.model.model.answer(compile_workload(spec.workload, schema))


of_groups = order["of_groups"]
small = peak_of(lambda: fit({"a": 2, "b": 2, "c": 2}, of_groups and {"g": 2}, **order["small"]))
print(peak_of(lambda: fit(order["sizes"], of_groups)) - small)
"""


def columns(count: int, size: int) -> dict[str, int]:
    return {f"c{i}": size for i in range(count)}


def groups(count: int, size: int) -> dict[str, int]:
    return {f"g{i}": size for i in range(count)}


def forecast(mechanism: dict[str, Any], sizes: dict[str, int], workload: Any = PAIRS) -> int | None:
    spec, schema = release(mechanism, workload=workload), coded_schema(sizes)
    public = schema if spec.mechanism.needs_public_data else None
    return plan(spec, schema, ADD_REMOVE, UNITS_PER_RHO, public=public).memory_bytes


def test_a_histogram_has_a_weight_for_every_combination_that_is_asked_about() -> None:
    sizes = {"a": 10, "b": 20, "unused": 1000}
    asked = [{"type": "marginals", "attributes": [["a", "b"]]}]
    assert forecast({"name": "pep"}, sizes, asked) == 8 * 200
    assert forecast({"name": "mwem"}, sizes, asked) == 2 * 8 * 200
    assert forecast({"name": "mwem", "output": "average"}, sizes, asked) == 3 * 8 * 200


@pytest.mark.parametrize("name", ["gaussian", "pmw_pub", "pep_pub"])
def test_nothing_is_said_where_public_numbers_do_not_tell(name: str) -> None:
    assert forecast({"name": name}, columns(3, 4)) is None


def test_a_graphical_model_has_as_many_cells_as_are_allowed_or_needed() -> None:
    few, many = (forecast({"name": "pgm_em"}, columns(n, 10)) for n in (3, 13))
    assert few is not None and many is not None
    measured = (44 + 8 * FIT_STEP_COPIES * FIT_STEPS) * 100  # bytes for each pair
    answered = 2 * 8 * 100
    across = CLIQUE_COPIES + ELIMINATED_TABLES
    assert few == across * 8 * 10**3 + 3 * (measured + answered)
    assert many == 8 * (CLIQUE_COPIES * 2**22 + ELIMINATED_TABLES * 2**20) + 78 * (
        measured + answered
    )
    smaller = forecast({"name": "pgm_em", "max_cells": 1000}, columns(13, 10))
    assert smaller == across * 8 * 1000 + 78 * (measured + answered)
    pairs, triples = (forecast({"name": "pgm_em"}, columns(13, 10), w) for w in (PAIRS, TRIPLES))
    assert pairs is not None and triples is not None
    assert triples - pairs == 2 * 8 * (286 * 10**3 - 78 * 10**2)


@pytest.mark.parametrize(
    "name",
    [
        "relaxed_projection",
        "generative_network",
        "rap",
        "rap_softmax",
        "gem",
        "gem_plus",
        "gem_pub",
    ],
)
def test_columns_that_are_not_released_take_no_memory(name: str) -> None:
    asked = [{"type": "marginals", "attributes": [["c0", "c1"]]}]
    few, many = (forecast({"name": name}, columns(n, 5), asked) for n in (2, 40))
    assert few == many


def test_a_query_player_looks_at_every_query() -> None:
    assert forecast({"name": "dual_query"}, columns(3, 10)) == 8 * 24 * 3 * 100
    assert forecast({"name": "fem"}, columns(3, 10)) == 8 * 24 * 3 * 100
    few, many = (forecast({"name": "query_gan", "components": n}, columns(3, 10)) for n in (1, 999))
    assert few is not None and many is not None and many > few > 8 * 24 * 3 * 100


def test_what_is_learnt_from_public_data_counts() -> None:
    plain, public = (forecast({"name": n}, columns(10, 10), TRIPLES) for n in ("gem", "gem_pub"))
    assert plain is not None and public is not None and public > plain + 16 * 120 * 1000


def test_joint_tables_are_bounded() -> None:
    sizes = coded_schema(columns(3, 100))
    triple = [MarginalBlock(("c0", "c1", "c2"))]
    smaller = [MarginalBlock(("c0", "c1")), MarginalBlock(("c2",))]
    assert joint_table_bytes(10, smaller, sizes) == 0
    assert joint_table_bytes(10, triple, sizes) == 4 * 4 * 10 * 100 * 100
    limit = MAX_ENTRIES // 100**2
    assert joint_table_bytes(limit, triple, sizes) < joint_table_bytes(limit + 1, triple, sizes)
    assert joint_table_bytes(10 * limit, triple, sizes) == 4 * 4 * MAX_ENTRIES


def test_joint_tables_do_not_have_the_largest_column_and_are_used_in_turn() -> None:
    sizes = coded_schema({"a": 2, "b": 3, "c": 10, "d": 20})
    blocks = [MarginalBlock(("a", "b", "c")), MarginalBlock(("d", "b", "a"))]
    assert joint_table_bytes(7, blocks, sizes) == 4 * 4 * 7 * 2 * 3


def test_drawing_from_a_mixture_needs_shares_and_tables_of_three_columns() -> None:
    assert mixture_draw_bytes(10, coded_schema({"a": 4, "b": 6})) == 3 * 8 * 10 * 10
    wide = coded_schema({"a": 4, "b": 6, "c": 50, "d": 2})
    assert mixture_draw_bytes(10, wide) == 3 * 8 * 10 * 62 + 4 * 4 * 10 * 4 * 6


@pytest.mark.slow
@pytest.mark.random
@pytest.mark.parametrize(
    ("mechanism", "sizes", "small"),
    [
        pytest.param({"name": "mwem", "rounds": 2, "passes": 2}, columns(6, 14), {}, id="mwem"),
        pytest.param(
            {"name": "relaxed_projection", "components": 10_000, "steps": 3},
            columns(10, 20),
            {"components": 5},
            id="relaxed projection",
        ),
        pytest.param(
            {"name": "generative_network", "components": 5000, "hidden": [512, 512], "steps": 3},
            columns(10, 20),
            {"components": 5, "hidden": [4]},
            id="generative network",
        ),
    ],
)
def test_a_fit_takes_about_what_was_forecast(
    mechanism: dict[str, Any], sizes: dict[str, int], small: dict[str, Any]
) -> None:
    expected = forecast(mechanism, sizes)
    assert expected is not None
    measured = measure(mechanism=mechanism, sizes=sizes, workload=PAIRS, small=small)
    assert expected / 2 < measured < 2 * expected


@pytest.mark.slow
@pytest.mark.random
def test_a_graphical_model_takes_at_most_what_was_forecast_and_not_far_less() -> None:
    """How large its cliques become depends on what is selected; the forecast is for the largest."""
    mechanism, sizes = {"name": "pgm_em", "rounds": 60}, columns(13, 10)
    expected = forecast(mechanism, sizes)
    assert expected is not None
    measured = measure(mechanism=mechanism, sizes=sizes, workload=PAIRS, small={}, answered=True)
    assert expected / 4 < measured < 1.25 * expected


@pytest.mark.slow
@pytest.mark.random
def test_answers_across_cliques_take_about_what_was_forecast() -> None:
    """A small model of pairs answers triples, which hardly any of its cliques hold."""
    mechanism = {"name": "pgm_em", "max_cells": 60_000, "rounds": 12, "measure": PAIRS}
    sizes = columns(6, 80)
    expected = forecast(mechanism, sizes, TRIPLES)
    assert expected is not None
    measured = measure(
        mechanism=mechanism, sizes=sizes, workload=TRIPLES, small={"rounds": 3}, answered=True
    )
    assert expected / 2 < measured < 2 * expected


@pytest.mark.slow
@pytest.mark.random
@pytest.mark.parametrize(
    ("mechanism", "of_groups", "sizes", "small"),
    [
        pytest.param(
            {"name": "h_mwem", "rounds": 2, "passes": 2},
            groups(3, 5),
            columns(3, 4),
            {},
            id="h_mwem",
        ),
        pytest.param(
            {"name": "h_gem", "rounds": 20, "steps": 3, "components": 3000},
            groups(6, 10),
            columns(8, 10),
            {"components": 5, "hidden": [4]},
            id="h_gem",
        ),
    ],
)
def test_a_fit_of_groups_takes_about_what_was_forecast(
    mechanism: dict[str, Any],
    of_groups: dict[str, int],
    sizes: dict[str, int],
    small: dict[str, Any],
) -> None:
    workload = [{"type": "hierarchical", "k": 2}]
    spec = release(mechanism, workload=workload)
    schema = two_level_schema(of_groups, sizes, 3).linked
    expected = plan(spec, schema, household(3), UNITS_PER_RHO).memory_bytes
    assert expected is not None
    measured = measure(
        mechanism=mechanism, sizes=sizes, workload=workload, small=small, of_groups=of_groups
    )
    assert expected / 2 < measured < 2 * expected


def measure(
    *, of_groups: dict[str, int] | None = None, answered: bool = False, **order: Any
) -> int:
    """With `answered`, of the fit and of what is asked afterwards."""
    announce_noise()
    order |= {"of_groups": of_groups, "answered": answered}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, json.dumps(order)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def traced(action: Callable[[], object]) -> int:
    """The peak of what an action allocates."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.random
@pytest.mark.parametrize(
    "mechanism",
    [{"name": "mwem", "rounds": 1}, {"name": "relaxed_projection", "components": 20, "steps": 2}],
    ids=lambda mechanism: mechanism["name"],
)
def test_drawing_rows_takes_at_most_what_was_forecast(mechanism: dict[str, Any]) -> None:
    rows, sizes = 100_000, columns(6, 3)
    schema = coded_schema(sizes)
    table = coded_table(schema, random_rows(sizes, 200))
    spec = release(mechanism, workload=PAIRS, outputs={"rows": rows})
    model = run(spec, table, protection=ADD_REMOVE, delta=1e-9, device="cpu").model
    needed = traced(lambda: model.sample(rows, 0))
    assert needed < drawn_bytes(rows, schema) < 2 * needed
    answered = model.answer(spec.workload)
    planned = plan(spec, schema, ADD_REMOVE, UNITS_PER_RHO)
    assert planned.output_bytes == drawn_bytes(rows, schema) + ANSWER_BYTES * len(answered.items)


@pytest.mark.random
def test_drawing_groups_takes_at_most_what_was_forecast() -> None:
    groups_drawn, schema = 50_000, two_level_schema(groups(2, 3), columns(3, 3), 4).linked
    table = linked_table(schema, random_households(schema, 100))
    mechanism = {"name": "h_gem", "rounds": 1, "steps": 2, "components": 20, "hidden": [4]}
    spec = release(mechanism, workload=[{"type": "hierarchical", "k": 2}], outputs={"rows": 10})
    model = run(spec, table, protection=household(4), delta=1e-9, device="cpu").model
    needed = traced(lambda: model.sample(groups_drawn, 0))
    assert needed < drawn_bytes(groups_drawn, schema) < 3 * needed
