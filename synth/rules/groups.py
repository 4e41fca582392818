"""Groups of a model that follow all rules about rows and about groups.

Groups that break a rule are drawn again, a public number of times. Those that are left are changed: first
the columns of groups, then individuals, then as few columns of individuals as the rules about groups need.
A group that cannot be changed so, because of its size or its columns, is replaced by a drawn group that
follows the rules, or by the smallest possible one.
"""

import math
from collections.abc import Callable

import numpy as np

from scrim.spec.rules.search import RuleSearch
from scrim.spec.two_level import LinkedSchema
from synth.rules.choice import DrawnChoice
from synth.rules.kinds import GroupRepair
from synth.rules.repair import Repair
from synth.rules.row_rules import Flags, Integers, RowRules
from synth.table import Chunk
from synth.table.linking import number_keys, sorted_within_groups, starts_of_groups

REDRAWS = 4
"""Most times that groups are drawn again. Each time costs a model about as much as all groups."""
LARGEST_REDRAW = 4
"""Most groups that are drawn again at a time, in units of all groups."""
LEAST_DRAWN = 1000
"""Groups that are drawn again at least at a time."""


class GroupRules:
    """The rules of linked rows."""

    def __init__(self, schema: LinkedSchema) -> None:
        self.schema = schema
        self.rows = RowRules(schema)

    def broken(self, chunk: Chunk) -> Flags:
        """Groups that break a rule, in order."""
        starts = starts_of_groups(chunk[self.schema.key])
        found = np.logical_or.reduceat(self.rows.broken(chunk), starts)
        parts = self.rows.parts(self.rows.numbers(chunk))
        length = len(chunk[self.schema.key])
        for count in self.rows.rules.counts:
            is_counted = np.ones(length, np.int64)
            for name, some in count.parts.items():
                axis = self.rows.rules.axes[name]
                is_in = np.zeros(axis.size + 1, np.bool_)
                is_in[list(some)] = True
                is_counted &= is_in[parts[name]]
            number = np.add.reduceat(is_counted, starts)
            found |= (number < count.least) | (number > count.most)
        return np.asarray(found)


def draw_valid_groups(
    schema: LinkedSchema, draw: Callable[[int], Chunk], *, groups: int, rng: np.random.Generator
) -> Chunk:
    """Draw groups that follow the rules."""
    rules = GroupRules(schema)
    chunk = draw(groups)
    broken = rules.broken(chunk)
    for _ in range(REDRAWS):
        wanted = int(broken.sum())
        if not wanted:
            return chunk
        fresh = draw(redrawn(wanted, groups))
        chosen = np.flatnonzero(~rules.broken(fresh))[:wanted]
        places = np.flatnonzero(broken)[: len(chosen)]
        chunk = _replaced(schema, chunk, places, fresh, chosen)
        broken[places] = False
    return _repaired(rules, chunk, rng) if broken.any() else chunk


def redrawn(broken: int, groups: int) -> int:
    """How many groups are drawn again if some of all groups break a rule; half of them more than needed."""
    accepted = max(1 / LARGEST_REDRAW, 1 - broken / groups)
    needed = math.ceil(1.5 * broken / accepted)
    return max(min(needed, LARGEST_REDRAW * groups), min(groups, LEAST_DRAWN))


def _repaired(rules: GroupRules, chunk: Chunk, rng: np.random.Generator) -> Chunk:
    """Change the groups that break a rule."""
    schema, rows = rules.schema, rules.rows
    choice = DrawnChoice(rows.rules, rows.numbers(chunk), rng)
    repair, counts = Repair(rows), GroupRepair(rows, choice)
    starts = starts_of_groups(chunk[schema.key])
    sizes = np.diff(starts, append=len(chunk[schema.key]))
    wrong = np.flatnonzero(rules.broken(chunk))
    mine = _rows_of(wrong, starts, sizes)
    numbers = rows.numbers({name: values[mine] for name, values in chunk.items()})
    firsts = np.cumsum(sizes[wrong]) - sizes[wrong]
    heads = {name: values[firsts] for name, values in numbers.items()}
    repair.of_groups(heads, choice)
    for name in rows.rules.of_groups & numbers.keys():
        numbers[name] = np.repeat(heads[name], sizes[wrong])
    repair.of_individuals(numbers, choice)
    for first, size in zip(firsts.tolist(), sizes[wrong].tolist(), strict=True):
        counts.change(numbers, slice(first, first + size))
    chunk = rows.with_numbers(chunk, mine, numbers)
    broken = rules.broken(chunk)
    if broken.any():
        chunk = _with_others(rules, chunk, broken, rng)
    ordered = np.repeat(np.arange(len(sizes)), np.diff(_edges(schema, chunk)))
    return sorted_within_groups(chunk, ordered, schema)


def _with_others(rules: GroupRules, chunk: Chunk, broken: Flags, rng: np.random.Generator) -> Chunk:
    """Replace groups by ones that follow the rules."""
    places, good = np.flatnonzero(broken), np.flatnonzero(~broken)
    if len(good):
        return _replaced(rules.schema, chunk, places, chunk, rng.choice(good, len(places)))
    smallest = _smallest(rules, chunk)
    return _replaced(rules.schema, chunk, places, smallest, np.zeros(len(places), np.int64))


def _smallest(rules: GroupRules, chunk: Chunk) -> Chunk:
    """One group of the parts that a search finds, with other columns as in the first drawn individual."""
    found = RuleSearch().group(rules.rows.rules)
    assert found is not None, "rules that no group can follow are refused"
    _, members = found
    rows = {name: np.repeat(values[:1], len(members)) for name, values in chunk.items()}
    numbers = rules.rows.numbers(rows)
    choice = DrawnChoice(rules.rows.rules, rules.rows.numbers(chunk), np.random.default_rng(0))
    for place, member in enumerate(members):
        for name, part in member.items():
            numbers[name][[place]] = choice.numbers(name, part, numbers[name][[place]])
    for name in rules.rows.rules.of_groups & numbers.keys():
        numbers[name][:] = numbers[name][0]
    Repair(rules.rows).of_individuals(numbers, choice)
    return rules.rows.with_numbers(rows, np.arange(len(members)), numbers)


def _replaced(
    schema: LinkedSchema, chunk: Chunk, places: Integers, others: Chunk, chosen: Integers
) -> Chunk:
    """The groups of a chunk, with groups of another chunk at some places."""
    first, second = _edges(schema, chunk), _edges(schema, others) + len(chunk[schema.key])
    starts, ends = first[:-1].copy(), first[1:].copy()
    starts[places], ends[places] = second[chosen], second[chosen + 1]
    sizes = ends - starts
    rows = _rows_of(np.arange(len(starts)), starts, sizes)
    together = {name: np.concatenate([chunk[name], others[name]])[rows] for name in chunk}
    return {**together, schema.key: number_keys(np.repeat(np.arange(len(sizes)), sizes))}


def _edges(schema: LinkedSchema, chunk: Chunk) -> Integers:
    return np.append(starts_of_groups(chunk[schema.key]), len(chunk[schema.key]))


def _rows_of(groups: Integers, starts: Integers, sizes: Integers) -> Integers:
    """The rows of some groups, group by group."""
    lengths = sizes[groups]
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts[groups] - before, lengths) + np.arange(lengths.sum())
