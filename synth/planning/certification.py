"""What `certify` measures of the released rows, and at what price (docs/privacy.md, section 5)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.workload import Block, Blocks
from synth.planning.columns import column_alone

LARGEST_SHARE = 0.5
"""Share for the largest error; the totals of items and of columns get half of the rest each."""


@dataclass(frozen=True)
class CertifiedItem:
    """The tables of a workload item, whose errors are released as one total."""

    blocks: tuple[Block, ...]
    tables: int
    """Number of tables; a range, prefix or halfspace is a table of two cells."""
    divisor: int
    """Mean total variation is the total error divided by this, as a fraction."""


@dataclass(frozen=True)
class Certification:
    """The operations of `certify`, in units of 1e-12 rho."""

    asked: Blocks
    largest: int
    """Units for the largest error over all that is asked."""
    items: tuple[CertifiedItem, ...]
    per_item: int
    """Units for the total error of one item."""
    columns: tuple[Block, ...]
    """The tables of single columns, whose totals are measured together."""
    for_columns: int
    """Units for all of them."""

    def moves(
        self, schema: Schema, protection: Protection, released_rows: int
    ) -> Iterable[tuple[list[int], int]]:
        """For each operation, how far a unit moves each of its numbers, and its units."""
        linf = max(block.sensitivity(schema, protection).linf for block in self.asked)
        yield [released_rows * linf], self.largest
        for item in self.items:
            yield [released_rows * sum(_l1(item.blocks, schema, protection))], self.per_item
        if self.columns:
            moved = [released_rows * l1 for l1 in _l1(self.columns, schema, protection)]
            yield moved, self.for_columns

    def operations(self, schema: Schema, protection: Protection) -> int:
        """The number of operations that spend budget."""
        return sum(any(moved) for moved, _ in self.moves(schema, protection, 1))


def plan_certification(units: int, asked: Blocks, schema: Schema) -> Certification:
    """Divide the units of `certify`; refuse too few."""
    columns = tuple(_tables_of_columns(schema))
    items = tuple(_certified_item(blocks, schema) for blocks in asked.items)
    largest = math.floor(units * LARGEST_SHARE)
    for_columns = (units - largest) // 2 if columns else 0
    per_item = (units - largest - for_columns) // len(items)
    if min(largest, per_item, for_columns if columns else 1) < 1:
        raise SpecError(
            f"the budget is too small to certify the rows: it has {units} units for "
            f"{len(items) + 1 + bool(columns)} operations; increase it, or certify with a larger share"
        )
    return Certification(asked, largest, items, per_item, columns, for_columns)


def _certified_item(blocks: Sequence[Block], schema: Schema) -> CertifiedItem:
    tables = divisor = 0
    for block in blocks:
        if block.is_whole:
            found = max(1, block.table_count(schema))
            tables, divisor = tables + found, divisor + 2 * found
        else:
            # The rows outside a predicate have the same error, so half of both is that of the query.
            tables, divisor = tables + block.size(schema), divisor + block.size(schema)
    return CertifiedItem(tuple(blocks), tables, divisor)


def _tables_of_columns(schema: Schema) -> list[Block]:
    """The one-way tables of columns that have discrete cells, more than one."""
    return [column_alone(name, schema) for name, size in schema.sizes.items() if size > 1]


def _l1(blocks: Iterable[Block], schema: Schema, protection: Protection) -> list[int]:
    return [block.sensitivity(schema, protection).l1 for block in blocks]
