"""A worker loads what its tasks need at its start, and each worker limits the threads of its jobs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.worker.support import ROOT, random_key
from worker import __main__ as main

# What the main process does, then what each process of its pool does, then a first question.
QUESTION = """
import json, sys
from celery import signals
from service.data.config import Settings
from service.data.logging import build_logger
from worker.app import open_app
from worker.warm import import_tasks

queues = sys.argv[1].split(",")
import_tasks(queues)
loaded = {"torch", "worker.models", "worker.turns", "sklearn"} & {*sys.modules}
late = []
with open_app(Settings(), build_logger(), None, queues):
    signals.worker_process_init.send(sender=None)
    if "fast" in queues:
        before = {*sys.modules}
        import torch
        from scrim.spec.question import Question
        from scrim.spec.schema import Schema
        from synth.domain import Domain
        from synth.models.product import ProductMixture
        from synth.models.released import ReleasedModel
        from worker.artifacts import rows_as_csv

        columns = [{"name": n, "type": "categorical", "values": ["x", "y"]} for n in "abcd"]
        schema = Schema.model_validate({"columns": columns})
        domain = Domain.of(schema)
        shares = torch.full((5, sum(domain.sizes)), 1 / domain.sizes[0])
        model = ReleasedModel(schema, 100, ProductMixture(domain, shares))
        model = ReleasedModel.from_bytes(model.to_bytes())
        asked = {"workload": [{"type": "marginals", "k": 3}]}
        model.answer(Question.model_validate(asked).workload)
        b"".join(rows_as_csv(schema, model.sample(50, seed=1)))
        late = sorted({*sys.modules} - before)
print(json.dumps([sorted(loaded), late]))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Settings of a worker that connects to nothing."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "SCRIM_DATABASE_URL": "postgresql://nobody@localhost:1/none",
        "SCRIM_BROKER_URL": "redis://localhost:1/0",
        "SCRIM_STORAGE_URL": tmp_path.as_uri(),
        "SCRIM_DATA_DIR": str(tmp_path),
        "SCRIM_MASTER_KEY": random_key(),
        "SCRIM_SIGNING_KEY": random_key(),
    }


@pytest.mark.parametrize(
    ("queues", "loaded"),
    [
        ("fast", ["torch", "worker.models"]),
        ("jobs", ["torch", "worker.turns"]),
        ("ingest", []),
        ("jobs,ingest,fast", ["torch", "worker.models", "worker.turns"]),
    ],
)
def test_what_tasks_need_is_loaded_before_the_first_task(
    queues: str, loaded: list[str], environment: dict[str, str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUESTION, queues],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    assert found == [loaded, []]


@pytest.mark.parametrize(
    ("cores", "concurrency", "setting", "expected"),
    [(8, 1, None, 8), (8, 3, None, 2), (2, 4, None, 1), (8, 4, "5", 5)],
)
def test_processes_of_a_worker_share_its_cores(
    cores: int,
    concurrency: int,
    setting: str | None,
    expected: int,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if setting is not None:
        monkeypatch.setenv("SCRIM_JOB_THREADS", setting)
    monkeypatch.setattr(main, "usable_cores", lambda: cores)
    assert main.settings_for(concurrency).job_threads == expected
