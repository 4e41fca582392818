"""How much one privacy unit can change counts (docs/privacy.md, section 3), in exact integers."""

from typing import NamedTuple

from scrim.spec.population import Protection


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
