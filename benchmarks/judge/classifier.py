"""What a classifier learns from rows. It needs scikit-learn, which `make setup-bench` installs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks.data import DataSet
from benchmarks.judge.sets import Target


def classifier_auc(
    training: DataSet, test: DataSet, target: Target, *, features: Sequence[str]
) -> float:
    """The area under the ROC curve on test rows of gradient-boosted trees that learnt from others."""
    learnt_from, labels = _examples(training, target, features)
    tested_on, expected = _examples(test, target, features)
    if labels.all() or not labels.any():
        return 0.5
    # One thread: several wait for each other on a busy machine, and take many times as long.
    with threadpool_limits(1):
        model = HistGradientBoostingClassifier(random_state=0).fit(learnt_from, labels)
        scores = model.predict_proba(tested_on)[:, 1]
    return float(roc_auc_score(expected, scores))


def _examples(
    data: DataSet, target: Target, features: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    codes = data.codes
    matrix = np.stack([codes[name] for name in features], axis=1)
    return matrix, np.isin(codes[target.column], list(target.positive))
