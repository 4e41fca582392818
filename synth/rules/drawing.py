"""Rows of a model that follow all rules.

1. Rows that break a rule exchange values with others, a public number of times (synth/rules/exchange.py).
   Of rows of codes, these are the ones that break a rule wherever their numbers are in their bins.
2. Numbers that break a rule inside their bins are drawn again inside the same bins, a public number of
   times: so a bin that a rule cuts keeps its share.
3. Rows that are left are changed in as few columns as possible (synth/rules/repair.py), so drawing always
   ends, and always with rows that follow the rules.
"""

from collections.abc import Mapping

import numpy as np

from scrim.spec.schema import Schema
from synth.rules.certain import CodeRules
from synth.rules.choice import DrawnChoice
from synth.rules.exchange import exchange
from synth.rules.repair import Repair
from synth.rules.row_rules import RowRules
from synth.table import Chunk, draw_values
from synth.table.chunk import Array

BIN_REDRAWS = 16
"""Most times that numbers are drawn again inside their bins."""


def draw_valid(schema: Schema, codes: Mapping[str, Array], rng: np.random.Generator) -> Chunk:
    """Rows that follow the rules, from the codes that a model drew."""
    rules, in_codes = RowRules(schema), CodeRules(schema)
    codes = {name: np.array(values) for name, values in codes.items()}
    exchange({name: codes[name] for name in in_codes.overlaps}, in_codes.broken, rng)
    chunk = dict(draw_values(schema, codes, rng))
    for _ in range(BIN_REDRAWS):
        broken = np.flatnonzero(rules.broken(chunk))
        if not len(broken):
            break
        again = draw_values(schema, {name: mine[broken] for name, mine in codes.items()}, rng)
        for name in rules.codecs:
            chunk[name][broken] = again[name]
    return repaired(rules, chunk, rng)


def change_to_valid(schema: Schema, drawn: Chunk, rng: np.random.Generator) -> Chunk:
    """Rows that follow the rules, from whole rows that a model drew."""
    rules = RowRules(schema)
    chunk = {name: np.array(values) for name, values in drawn.items()}
    columns = {name: chunk[name] for name in rules.codecs}
    exchange(columns, lambda some, rows: rules.broken(some), rng)
    return repaired(rules, chunk, rng)


def repaired(rules: RowRules, chunk: Chunk, rng: np.random.Generator) -> Chunk:
    """The same rows; those that break a rule are changed in as few columns as possible."""
    broken = np.flatnonzero(rules.broken(chunk))
    if not len(broken):
        return chunk
    choice = DrawnChoice(rules.rules, rules.numbers(chunk), rng)
    numbers = rules.numbers({name: values[broken] for name, values in chunk.items()})
    Repair(rules).of_individuals(numbers, choice)
    return rules.with_numbers(chunk, broken, numbers)
