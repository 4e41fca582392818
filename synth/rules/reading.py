"""Private rows that break a rule are mapped to rows that follow it, where the table is read.

The map is a function of one row alone, and fixed, so neighbouring tables are mapped to neighbouring
tables (docs/privacy.md, section 3.3). No row is dropped, and none is reported.
"""

from collections.abc import Iterator

from synth.rules.choice import FixedChoice
from synth.rules.repair import Repair
from synth.rules.row_rules import RowRules
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
        broken = self._rows.broken(chunk).nonzero()[0]
        if not len(broken):
            return chunk
        numbers = self._rows.numbers({name: values[broken] for name, values in chunk.items()})
        self._repair.rows_alone(numbers, self._choice)
        return self._rows.with_numbers(chunk, broken, numbers)
