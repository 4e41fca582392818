"""The privacy filter of one job: integer units, charged before the data are read."""

from collections import Counter


class BudgetExceeded(Exception):
    """An operation would cost more than the job has left. The data were not read."""


class NotPlanned(Exception):
    """An operation is not in the plan by which its release is accounted. The data were not read."""


class Accountant:
    """Accepts a charge if and only if the total stays within the budget.

    `planned` are the kinds and scales of all operations, for a release that is accounted by the exact
    curve of its plan (docs/privacy.md, section 2.9): then an operation must also be one of them.
    """

    def __init__(
        self, budget: int, *, spent: int = 0, planned: Counter[tuple[str, float]] | None = None
    ) -> None:
        if spent < 0 or budget < spent:
            raise BudgetExceeded(f"the journal holds {spent} units, the budget is {budget}")
        self._budget, self._spent = budget, spent
        self._planned = None if planned is None else Counter(planned)

    @property
    def spent(self) -> int:
        """Units charged so far."""
        return self._spent

    def follow_plan(self, kind: str, scale: float) -> None:
        """Strike an operation off the plan, or refuse it; without a plan, do nothing."""
        if self._planned is None:
            return
        if self._planned[kind, scale] < 1:
            raise NotPlanned(f"the plan has no further {kind} with noise of scale {scale:g}")
        self._planned[kind, scale] -= 1

    def charge(self, units: int) -> None:
        """Take units from the budget, or refuse."""
        if units < 0 or self._spent + units > self._budget:
            raise BudgetExceeded(f"{units} units asked, {self._budget - self._spent} left")
        self._spent += units
