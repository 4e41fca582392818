"""Threads of a fit: their number follows from the size of the model, and waiting threads sleep."""

import os
import subprocess
import sys

import pytest
import torch

from synth import threads
from synth.run import run
from synth.threads import (
    BYTES_PER_THREAD,
    PASSIVE_WAITING,
    choose_threads,
    fitting_threads,
    wait_passively,
)
from tests.support import ADD_REMOVE, coded_schema, coded_table, random_rows, release

SIZES = {"a": 2, "b": 3}


@pytest.mark.parametrize(
    ("memory_bytes", "limit", "expected"),
    [
        (None, 8, 1),
        (0, 8, 1),
        (BYTES_PER_THREAD, 8, 1),
        (2 * BYTES_PER_THREAD - 1, 8, 1),
        (2 * BYTES_PER_THREAD, 8, 2),
        (100 * BYTES_PER_THREAD, 8, 8),
        (100 * BYTES_PER_THREAD, 1, 1),
    ],
)
def test_large_models_get_more_threads(memory_bytes: int | None, limit: int, expected: int) -> None:
    assert choose_threads(memory_bytes, limit=limit) == expected


@pytest.mark.parametrize(("limit", "expected"), [(None, 3), (2, 2), (1, 1), (9, 3)])
def test_torch_uses_them_while_the_block_runs(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, expected: int
) -> None:
    before = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    chosen: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    with fitting_threads(100 * BYTES_PER_THREAD, limit=limit):
        assert chosen == [expected]
    assert chosen == [expected, 3]
    monkeypatch.undo()
    assert torch.get_num_threads() == before


def test_a_failed_fit_gives_them_back() -> None:
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), fitting_threads(None, limit=None):
        raise RuntimeError
    assert torch.get_num_threads() == before


@pytest.mark.random  # measures once; holds for any noise
def test_a_small_release_is_fitted_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def choose(memory_bytes: int | None, *, limit: int) -> int:
        asked.append(choose_threads(memory_bytes, limit=max(4, limit)))
        return 1

    monkeypatch.setattr(threads, "choose_threads", choose)
    schema = coded_schema(SIZES)
    table = coded_table(schema, random_rows(SIZES, 100))
    spec = release({"name": "relaxed_projection", "components": 10, "steps": 2})
    run(spec, table, protection=ADD_REMOVE, delta=1e-9)
    assert asked == [1]


def test_waiting_threads_sleep_unless_the_operator_says_otherwise() -> None:
    environment = {"OMP_WAIT_POLICY": "ACTIVE"}
    wait_passively(environment)
    assert environment == PASSIVE_WAITING | {"OMP_WAIT_POLICY": "ACTIVE"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have another OpenMP")
def test_openmp_reads_what_was_set_before_torch() -> None:
    program = (
        "import sys, synth.threads; assert 'torch' not in sys.modules; "
        "synth.threads.wait_passively(); import torch; torch.ones(2) @ torch.ones(2)"
    )
    clean = {name: value for name, value in os.environ.items() if name not in PASSIVE_WAITING}
    environment = {**clean, "OMP_DISPLAY_ENV": "VERBOSE"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in done.stderr
    assert "GOMP_SPINCOUNT = '0'" in done.stderr
