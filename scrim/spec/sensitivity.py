"""How much one privacy unit can change counts (docs/privacy.md, section 3), in exact integers."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection

MAX_PART_CELLS = 2**22
"""Largest part of a marginal: its values stay below 2^63 for every table of fewer than 2^41 rows."""


class Sensitivity(NamedTuple):
    """How much one privacy unit can change the counts of a block of queries."""

    l1: int
    l2_squared: int
    linf: int

    def stacked(self, blocks: int) -> "Sensitivity":
        """The sensitivity of several such blocks: a unit may change each of them by the maximum."""
        return Sensitivity(blocks * self.l1, blocks * self.l2_squared, self.linf)


def of_partition(cells: int, protection: Protection) -> Sensitivity:
    """Cells that partition the rows, such as a whole marginal: replacing a row changes two cells."""
    if cells == 1:
        # A single cell counts all rows: replacing a unit changes it as much as the row count.
        only = protection.row_count_sensitivity
        return Sensitivity(l1=only, l2_squared=only**2, linf=only)
    rows = protection.max_rows_per_unit
    moved = 2 if protection.relation == "replace_one" else 1
    return Sensitivity(l1=moved * rows, l2_squared=moved * rows**2, linf=rows)


def of_predicates(count: int, protection: Protection) -> Sensitivity:
    """Arbitrary predicates: a row may satisfy all of them, under either relation."""
    rows = protection.max_rows_per_unit
    return Sensitivity(l1=count * rows, l2_squared=count * rows**2, linf=rows)


def of_part(sizes: Sequence[int], protection: Protection) -> Sensitivity:
    """A part of a marginal over columns of these sizes, under add/remove: a row moves every cell."""
    if protection.relation != "add_remove":
        raise SpecError(
            "parts of marginals are measured only under the relation add_remove; measure whole marginals"
        )
    if math.prod(sizes) > MAX_PART_CELLS:
        raise SpecError(
            f"a part of a marginal has {math.prod(sizes):,} cells, more than the limit of "
            f"{MAX_PART_CELLS:,}; measure whole marginals"
        )
    rows = protection.max_rows_per_unit
    return Sensitivity(
        l1=rows * math.prod(2 * (size - 1) for size in sizes),
        l2_squared=rows**2 * math.prod(size * (size - 1) for size in sizes),
        linf=rows * math.prod(size - 1 for size in sizes),
    )


def shifts_of_part(sizes: Sequence[int]) -> dict[int, int]:
    """How far one row moves the cells of a part, as absolute values, and how many cells move that far."""
    shifts = {1: 1}
    for size in sizes:
        found: dict[int, int] = {}
        for shift, cells in shifts.items():
            # Along each column one cell agrees with the row, and the others do not.
            for factor, times in ((size - 1, 1), (1, size - 1)):
                moved = shift * factor
                found[moved] = found.get(moved, 0) + cells * times
        shifts = found
    return {shift: cells for shift, cells in shifts.items() if cells}
