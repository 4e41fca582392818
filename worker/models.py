"""Questions to a released model. It holds no private information, so nothing is charged."""

import json
import secrets
from collections import OrderedDict
from typing import Any
from uuid import UUID

from scrim.spec.question import Question
from service.data import releases
from service.data.artifacts import read_artifact
from service.data.context import Context
from synth.models.released import ANSWER_COLUMNS, ReleasedModel
from worker.artifacts import MODEL, as_one_table, rows_as_csv

MODELS_KEPT = 4
"""Models that a process keeps in memory."""


class ModelCache:
    """Recently used models, by the hash of their content."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._models: OrderedDict[bytes, ReleasedModel] = OrderedDict()

    def answer(self, release_id: UUID, workload: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Answers to a workload, one for each query."""
        question = Question.model_validate_json(json.dumps({"workload": workload}))
        answers = self._model(release_id).answer(question.workload)
        return [dict(zip(ANSWER_COLUMNS, line, strict=True)) for line in answers.lines()]

    def sample(self, release_id: UUID, rows: int) -> str:
        """New random rows as CSV; individuals with their groups, for two-level data."""
        model = self._model(release_id)
        drawn = model.sample(rows, seed=secrets.randbits(48))
        return b"".join(rows_as_csv(*as_one_table(model.schema, drawn))).decode()

    def _model(self, release_id: UUID) -> ReleasedModel:
        with self._context.transaction() as work:
            artifact = releases.artifact(work.session, release_id, MODEL)
        found = self._models.get(artifact.sha256)
        if found is None:
            content = b"".join(read_artifact(self._context, artifact))
            found = self._models[artifact.sha256] = ReleasedModel.from_bytes(content)
        self._models.move_to_end(artifact.sha256)
        while len(self._models) > MODELS_KEPT:
            self._models.popitem(last=False)
        return found
