"""What a worker loads at its start, so that its first task is as fast as the others.

Modules are imported in the main process, before it forks: the pool's processes share them, and a process
that replaces another one starts with them. Torch may be imported before a fork, but not used: its threads
would be missing in the forked process, which would wait for them forever. The first use of a model is
therefore in each process of the pool.
"""

from collections.abc import Collection
from importlib import import_module

from scrim.spec.question import Question
from scrim.spec.schema import Schema
from service.data.task_queue import FAST, JOBS

NEEDED = {JOBS: "worker.turns", FAST: "worker.models"}
"""The module with the tasks of each queue that fits or reads models."""

_WARM_SCHEMA = {
    "columns": [
        {"name": name, "type": "categorical", "values": ["0", "1"], "other": "1"}
        for name in ("a", "b", "c")
    ]
}
_WARM_QUESTION = {"workload": [{"type": "marginals", "k": 1}, {"type": "marginals", "k": 2}]}


def import_tasks(queues: Collection[str]) -> None:
    """Import what the tasks of these queues need; the queue of uploads needs no torch."""
    for queue in queues:
        if queue in NEEDED:
            import_module(NEEDED[queue])


def answer_once() -> None:
    """Answer a question of a small model and draw rows from it; nothing is read or stored."""
    import torch

    from synth.domain import Domain
    from synth.models.product import ProductMixture
    from synth.models.released import ReleasedModel
    from worker.artifacts import rows_as_csv

    schema = Schema.model_validate(_WARM_SCHEMA)
    domain = Domain.of(schema)
    shares = torch.cat([torch.full((2, size), 1 / size) for size in domain.sizes], dim=1)
    written = ReleasedModel(schema, 10, ProductMixture(domain, shares)).to_bytes()
    model = ReleasedModel.from_bytes(written)
    model.answer(Question.model_validate(_WARM_QUESTION).workload)
    b"".join(rows_as_csv(schema, model.sample(10, seed=0)))
