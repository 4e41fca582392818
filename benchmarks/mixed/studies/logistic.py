"""Logistic regression on tables: features from declared columns, weights by L-BFGS, F1 scores."""

from collections.abc import Sequence

import numpy as np
import torch

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Schema
from synth.table import Table

STEPS = 100


def features_of(table: Table, names: Sequence[str]) -> torch.Tensor:
    """Features of a table: one-hot categories, numbers scaled to their bounds, missing values marked."""
    parts = [_features_of_chunk(chunk, table.schema, names) for chunk in _numbers(table, names)]
    return torch.from_numpy(np.concatenate(parts))


def _numbers(table: Table, names: Sequence[str]) -> list[dict[str, np.ndarray]]:
    return [numbers for _, numbers in table.read(codes=(), numbers=names)]


def _features_of_chunk(
    numbers: dict[str, np.ndarray], schema: Schema, names: Sequence[str]
) -> np.ndarray:
    columns = []
    for name in names:
        column = schema.attribute(name)
        if isinstance(column, LabelledColumn):
            columns.append(np.eye(column.size, dtype=np.float32)[numbers[name].astype(np.int64)])
            continue
        missing = np.isnan(numbers[name])
        place = (numbers[name] - column.line.lower) / (column.line.upper - column.line.lower)
        columns.append(np.stack([np.where(missing, 0, place), missing], axis=1).astype(np.float32))
    return np.concatenate(columns, axis=1)


def labels_of(table: Table, name: str, positive: str) -> torch.Tensor:
    """Labels: 1 if a categorical column has the given value, else 0."""
    column = table.schema.attribute(name)
    assert isinstance(column, LabelledColumn)
    codes = np.concatenate([chunk[name] for chunk in _numbers(table, [name])])
    return torch.from_numpy((codes == column.labels.index(positive)).astype(np.float32))


class LogisticRegression:
    """Weights of the features and of a constant, with the usual unit penalty on the former."""

    def __init__(self, features: torch.Tensor, labels: torch.Tensor) -> None:
        self._weights = torch.zeros(features.shape[1], requires_grad=True)
        self._constant = torch.zeros(1, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [self._weights, self._constant], max_iter=STEPS, line_search_fn="strong_wolfe"
        )

        def loss() -> torch.Tensor:
            optimiser.zero_grad()
            misfit = torch.nn.functional.binary_cross_entropy_with_logits(
                self._logits(features), labels
            )
            total = misfit + self._weights.square().sum() / (2 * len(labels))
            total.backward()
            return total

        optimiser.step(loss)

    def _logits(self, features: torch.Tensor) -> torch.Tensor:
        return features @ self._weights + self._constant

    def predict(self, features: torch.Tensor) -> torch.Tensor:
        """Predict which rows are positive."""
        with torch.no_grad():
            return self._logits(features) > 0


def f1_score(predicted: torch.Tensor, labels: torch.Tensor) -> float:
    """The harmonic mean of precision and recall; 0 if no row is predicted correctly."""
    positive = labels > 0
    hits = (predicted & positive).sum().item()
    mistakes = (predicted != positive).sum().item()
    return 2 * hits / (2 * hits + mistakes) if hits else 0.0
