"""Private rows that break a rule are mapped to rows that follow it, where the table is read.

The map is a function of one row alone, and fixed, so neighbouring tables are mapped to neighbouring
tables (docs/privacy.md, section 3.3). No row is dropped, and none is reported.
"""

from collections.abc import Callable, Iterator

import numpy as np

from synth.rules.choice import FixedChoice, RowChoice
from synth.rules.repair import Repair
from synth.rules.row_rules import Integers, Numbers, RowRules
from synth.table import Chunk, Table


def following_rules(table: Table) -> Table:
    """The same rows; those that break a rule of the table's schema are mapped."""
    return Table(table.schema, _MappedChunks(table)) if table.schema.rule_set.axes else table


class _MappedChunks:
    """A table's chunks with mapped rows; each iteration reads them again."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows = RowRules(table.schema)
        self._repair = Repair(self._rows)
        self._choice = FixedChoice(self._rows.rules)

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in self._table.chunks():
            yield self._mapped(chunk)

    def _mapped(self, chunk: Chunk) -> Chunk:
        chunk = self._rows.rounded(chunk)
        if self._repair.shared:
            # In all rows: whether an individual breaks a rule must not move the columns of its group.
            every = np.arange(len(next(iter(chunk.values()))))
            chunk = self._changed(chunk, every, self._repair.of_groups)
        broken = self._rows.broken(chunk).nonzero()[0]
        return self._changed(chunk, broken, self._repair.of_individuals)

    def _changed(
        self, chunk: Chunk, rows: Integers, change: Callable[[Numbers, RowChoice], None]
    ) -> Chunk:
        if not len(rows):
            return chunk
        numbers = self._rows.numbers({name: values[rows] for name, values in chunk.items()})
        change(numbers, self._choice)
        return self._rows.with_numbers(chunk, rows, numbers)
