"""Rows of a model that follow all rules.

1. Rows whose codes break a rule are drawn again, a public number of times: what is accepted has the
   model's distribution, given the rules.
2. Numbers that break a rule inside their bins are drawn again inside the same bins, a public number of
   times: so a bin that a rule cuts keeps its share.
3. Rows that are left are changed in as few columns as possible (synth/rules/repair.py), so drawing always
   ends, and always with rows that follow the rules.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.rules.certain import CodeRules
from synth.rules.choice import DrawnChoice
from synth.rules.repair import Repair
from synth.rules.row_rules import Integers, RowRules
from synth.table import Chunk, draw_values

REDRAWS = 4
"""Most times that rows are drawn again. Each time costs a model about as much as all rows."""
LARGEST_REDRAW = 4
"""Most rows that are drawn again at a time, in units of all rows."""
BIN_REDRAWS = 16
"""Most times that numbers are drawn again inside their bins."""
LEAST_DRAWN = 1000
"""Rows that are drawn again at least at a time."""

Codes = Mapping[str, NDArray[Any]]


def draw_valid(
    schema: Schema, draw: Callable[[int], Codes], *, rows: int, rng: np.random.Generator
) -> Chunk:
    """Draw rows that follow the rules, from the codes that a model draws."""
    codes = _accepted(CodeRules(schema), draw, rows)
    rules = RowRules(schema)
    chunk = dict(draw_values(schema, codes, rng))
    for _ in range(BIN_REDRAWS):
        broken = np.flatnonzero(rules.broken(chunk))
        if not len(broken):
            break
        again = draw_values(schema, {name: mine[broken] for name, mine in codes.items()}, rng)
        for name in rules.codecs:
            chunk[name][broken] = again[name]
    return repaired(rules, chunk, rng)


def choose_valid(
    schema: Schema, draw: Callable[[int], Chunk], *, rows: int, rng: np.random.Generator
) -> Chunk:
    """Draw rows that follow the rules, from a model of whole rows."""
    rules = RowRules(schema)
    chunk = {name: values.copy() for name, values in draw(rows).items()}
    for _ in range(REDRAWS):
        broken = np.flatnonzero(rules.broken(chunk))
        if not len(broken):
            break
        fresh = draw(redrawn(len(broken), rows))
        chosen = np.flatnonzero(~rules.broken(fresh))[: len(broken)]
        for name, values in chunk.items():
            values[broken[: len(chosen)]] = fresh[name][chosen]
    return repaired(rules, chunk, rng)


def repaired(rules: RowRules, chunk: Chunk, rng: np.random.Generator) -> Chunk:
    """The same rows; those that break a rule are changed in as few columns as possible."""
    broken = np.flatnonzero(rules.broken(chunk))
    if not len(broken):
        return chunk
    choice = DrawnChoice(rules.rules, rules.numbers(chunk), rng)
    numbers = rules.numbers({name: values[broken] for name, values in chunk.items()})
    Repair(rules).rows_alone(numbers, choice)
    return with_numbers(rules, chunk, broken, numbers)


def with_numbers(
    rules: RowRules, chunk: Chunk, rows: Integers, numbers: Mapping[str, NDArray[np.float64]]
) -> Chunk:
    """The chunk with other numbers in some rows."""
    changed = dict(chunk)
    for name, mine in numbers.items():
        changed[name] = chunk[name].copy()
        changed[name][rows] = rules.stored(name, mine)
    return changed


def _accepted(rules: CodeRules, draw: Callable[[int], Codes], rows: int) -> Codes:
    codes = {name: np.array(values) for name, values in draw(rows).items()}
    for _ in range(REDRAWS):
        broken = np.flatnonzero(rules.broken(codes, rows))
        if not len(broken):
            break
        number = redrawn(len(broken), rows)
        fresh = draw(number)
        chosen = np.flatnonzero(~rules.broken(fresh, number))[: len(broken)]
        for name, values in codes.items():
            values[broken[: len(chosen)]] = fresh[name][chosen]
    return codes


def redrawn(broken: int, rows: int) -> int:
    """How many rows are drawn again if some of all rows break a rule; half of them more than needed."""
    accepted = max(1 / LARGEST_REDRAW, 1 - broken / rows)
    needed = math.ceil(1.5 * broken / accepted)
    return max(min(needed, LARGEST_REDRAW * rows), min(rows, LEAST_DRAWN))
