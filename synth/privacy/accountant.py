"""The privacy filter of one job: integer units, charged before the data are read."""


class BudgetExceeded(Exception):
    """An operation would cost more than the job has left. The data were not read."""


class Accountant:
    """Accepts a charge if and only if the total stays within the budget."""

    def __init__(self, budget: int, *, spent: int = 0) -> None:
        if spent < 0 or budget < spent:
            raise BudgetExceeded(f"the journal holds {spent} units, the budget is {budget}")
        self._budget, self._spent = budget, spent

    @property
    def spent(self) -> int:
        """Units charged so far."""
        return self._spent

    def charge(self, units: int) -> None:
        """Take units from the budget, or refuse."""
        if units < 0 or self._spent + units > self._budget:
            raise BudgetExceeded(f"{units} units asked, {self._budget - self._spent} left")
        self._spent += units
