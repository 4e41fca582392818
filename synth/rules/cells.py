"""Cells of tables, and other queries, that no row can be in: public counts of zero."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from scrim.spec.schema import Schema
from scrim.spec.workload import Block, HierarchicalBlock, MarginalBlock
from synth.queries import ConjunctionQueries, HierarchicalQueries, Marginal, QueryBlock, Single
from synth.rules.certain import CodeRules, within
from synth.rules.row_rules import Flags
from synth.rules.valid import ValidTable

MAX_KNOWN_CELLS = 2**14
"""Most cells of a table that is added to a fit for its zeros alone."""


class CellRules:
    """The rules of a schema in terms of cells."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._codes = CodeRules(schema)

    def of_columns(self, names: Sequence[str]) -> Flags | None:
        """Whether each combination of codes is impossible, one axis for each column; None if none is."""
        sizes = [self._schema.sizes[name] for name in names]
        found = np.zeros(sizes, np.bool_)
        for table in self._tables:
            mine = [n for n in table.names if n in names and n in self._codes.overlaps]
            if not mine:
                continue
            possible = table.projected(mine).astype(np.float32)
            for axis, name in enumerate(mine):
                overlaps = self._codes.overlaps[name].astype(np.float32)
                possible = np.moveaxis(np.tensordot(overlaps, possible, (1, axis)), 0, axis)
            found |= _spread(possible == 0, mine, names)
        for order in self._schema.rule_set.orders:
            pair = [order.low, order.high]
            if all(n in names and n in self._codes.overlaps for n in pair):
                lows = self._codes.bounds[order.low][0][:, None]
                highs = self._codes.bounds[order.high][1][None, :]
                found |= _spread(lows >= highs if order.is_strict else lows > highs, pair, names)
        return found if found.any() else None

    def zeros(self, query: QueryBlock | Single) -> Flags | None:
        """Whether each count of a query is known to be zero; None if none is."""
        if isinstance(query, Single):
            whole = self.zeros(query.block)
            return None if whole is None else whole[[query.index]]
        if isinstance(query, Marginal | HierarchicalQueries):
            found = self.of_columns(query.attributes) if query.attributes else None
            return None if found is None else found.ravel()
        if isinstance(query, ConjunctionQueries):
            return self._of_conjunctions(query)
        return None

    def known_tables(self) -> list[Block]:
        """The tables of the columns of each rule, as far as they are small."""
        rules, sizes = self._schema.rule_set, self._schema.sizes
        sets = [*(f.parts for f in rules.forbidden), *((o.low, o.high) for o in rules.orders)]
        found: dict[tuple[str, ...], None] = {}
        for some in sets:
            names = tuple(name for name in self._schema.names if name in some and name in sizes)
            cells = int(np.prod([float(sizes[name]) for name in names]))
            if names and cells <= MAX_KNOWN_CELLS:
                found[names] = None
        largest = [n for n in found if not any(set(n) < set(other) for other in found)]
        if self._schema.is_linked:
            return [HierarchicalBlock(names, "individual") for names in largest]
        return [MarginalBlock(names) for names in largest]

    def _of_conjunctions(self, query: ConjunctionQueries) -> Flags | None:
        if not all(column.name in self._schema.sizes for column in query.columns):
            return None
        conditions, names = query.conditions_in_bins, [column.name for column in query.columns]
        found = np.zeros(query.size, np.bool_)
        for each in self._schema.rule_set.forbidden:
            if not all(name in names for name in each.parts):
                continue
            inside = np.ones(query.size, np.bool_)
            for name, parts in each.parts.items():
                summed = np.append(0, within(self._codes.overlaps[name], parts).cumsum())
                on = conditions.column == names.index(name)
                low, high = (np.asarray(c[on], np.int64) for c in (conditions.low, conditions.high))
                is_in = np.zeros(query.size, np.bool_)
                is_in[conditions.query[on]] = summed[high] - summed[low] == high - low
                inside &= is_in
            found |= inside
        return found if found.any() else None

    @cached_property
    def _tables(self) -> list[ValidTable]:
        return [ValidTable(component) for component in self._schema.rule_set.components]


def _spread(found: Flags, mine: Sequence[str], names: Sequence[str]) -> Flags:
    """A table of some columns in the shape of a table of more, in the order of `names`."""
    order = sorted(range(len(mine)), key=lambda axis: names.index(mine[axis]))
    ordered = found.transpose(order)
    sizes = iter(ordered.shape)
    return ordered.reshape([next(sizes) if name in mine else 1 for name in names])
