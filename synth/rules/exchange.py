"""Exchange values between rows, so that fewer rows break a rule and every column keeps its values.

A model that fits the single columns well puts rows of forbidden combinations where it lacks rows of
allowed ones. An exchange of one value makes two allowed rows out of them, and leaves the tables of single
columns as they are. Drawing rows again does not: it removes whole rows (docs/adr/0025-rules.md).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.rules.row_rules import Flags

EXCHANGES = 200
"""Rounds in which rows that break a rule are offered an exchange."""

Columns = dict[str, NDArray[Any]]


def exchange(
    columns: Columns, broken: Callable[[Columns, int], Flags], rng: np.random.Generator
) -> None:
    """Exchange values in place; `broken` says which rows of some columns break a rule.

    In turns, partners are other rows that break a rule, and any rows.
    """
    names = list(columns)
    rows = len(columns[names[0]])
    bad = np.flatnonzero(broken(columns, rows))
    for turn in range(EXCHANGES):
        if not len(bad):
            return
        mine = rng.permutation(bad)
        if turn % 2:
            # Distinct, and paired at random because `mine` is in random order.
            partners = np.unique(rng.integers(rows, size=len(mine)))
            is_free = ~np.isin(partners, mine[: len(partners)])
            mine, partners = mine[: len(partners)][is_free], partners[is_free]
        else:
            half = len(mine) // 2
            mine, partners = mine[:half], mine[half : 2 * half]
        name = names[rng.integers(len(names))]
        _exchange_one(columns, name, mine, partners, broken)
        bad = bad[broken({n: values[bad] for n, values in columns.items()}, len(bad))]


def _exchange_one(
    columns: Columns,
    name: str,
    mine: NDArray[np.int64],
    partners: NDArray[np.int64],
    broken: Callable[[Columns, int], Flags],
) -> None:
    """Exchange the values of a column between pairs of rows wherever fewer of the two then break a rule."""
    both = np.concatenate([mine, partners])
    now = {n: values[both] for n, values in columns.items()}
    then = {**now, name: columns[name][np.concatenate([partners, mine])]}
    before, after = (broken(each, len(both)).reshape(2, -1).sum(axis=0) for each in (now, then))
    is_better = np.tile(after < before, 2)
    columns[name][both[is_better]] = then[name][is_better]
