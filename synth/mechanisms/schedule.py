"""How much each round may spend: equal shares, or larger ones once the model stops improving.

Paper: McKenna, Mullins, Sheldon, Miklau (2022), AIM: An Adaptive and Iterative Mechanism for
Differentially Private Synthetic Data, algorithms 1 and 4 (budget annealing).
Departures: amounts are integer units; the one-way marginals have their own share.
"""

from dataclasses import dataclass
from typing import Protocol

from synth.door import Door
from synth.planning.spending import AnnealedRounds, Rounds


@dataclass(frozen=True)
class RoundShare:
    """The budget of one round, in units of 1e-12 rho."""

    select: int
    """Units for selecting all of its candidates."""
    measure: int
    """Units for measuring one of them."""


class Schedule(Protocol):
    """How many rounds there are, and what each may spend."""

    @property
    def rounds_left(self) -> int:
        """The number of remaining rounds, as currently planned."""

    def next_share(self) -> RoundShare:
        """Return the budget of the next round."""

    def note(self, *, learnt: bool) -> None:
        """Record whether the last round changed the model more than noise would have."""


def schedule_of(plan: Rounds, door: Door, *, per_round: int) -> Schedule:
    """Return the schedule for a plan; each round measures `per_round` candidates."""
    if isinstance(plan, AnnealedRounds):
        return Annealed(plan, door, per_round=per_round)
    return Equal(plan)


class Equal:
    """As many rounds as planned, all with the same share."""

    def __init__(self, plan: Rounds) -> None:
        self.rounds_left = plan.rounds
        self._share = RoundShare(plan.select, plan.measure)

    def next_share(self) -> RoundShare:
        """Return the fixed share."""
        self.rounds_left -= 1
        return self._share

    def note(self, *, learnt: bool) -> None:
        """Do nothing: the shares are fixed."""


class Annealed:
    """Shares that grow until the reserve is spent.

    The remaining budget is computed from the prices of all operations, including those that a resumed job
    reads from its journal. So a resumed job never exceeds the reserve, even if its model differs slightly.
    """

    def __init__(self, plan: AnnealedRounds, door: Door, *, per_round: int) -> None:
        self._door = door
        self._end = door.used + plan.reserved
        self._most_rounds = plan.rounds
        self._per_round = per_round
        self._share = RoundShare(plan.select, plan.measure)
        self._least = self._cost(self._share)

    @property
    def rounds_left(self) -> int:
        """The number of rounds affordable at the current share; 0 if the first share is not affordable."""
        if self._left < self._least:
            return 0
        return min(self._most_rounds, max(1, self._left // self._cost(self._share)))

    def next_share(self) -> RoundShare:
        """Return the current share, or the whole remainder if it pays for fewer than two rounds."""
        if self.rounds_left == 1:
            select = self._left * self._share.select // self._cost(self._share)
            self._share = RoundShare(select, (self._left - select) // self._per_round)
        self._most_rounds -= 1
        return self._share

    def note(self, *, learnt: bool) -> None:
        """Apply algorithm 4: halving sigma and doubling epsilon takes four times the rho of each."""
        if not learnt:
            self._share = RoundShare(4 * self._share.select, 4 * self._share.measure)

    @property
    def _left(self) -> int:
        return self._end - self._door.used

    def _cost(self, share: RoundShare) -> int:
        return share.select + self._per_round * share.measure
