"""How much each round may spend: all the same, or more once the model has stopped learning.

Paper: McKenna, Mullins, Sheldon, Miklau (2022), AIM: An Adaptive and Iterative Mechanism for
Differentially Private Synthetic Data, algorithms 1 and 4 (budget annealing).
Departures: whole units; the one-way marginals have a share of their own.
"""

from dataclasses import dataclass
from typing import Protocol

from synth.door import Door
from synth.planning.spending import AnnealedRounds, Rounds


@dataclass(frozen=True)
class RoundShare:
    """What one round may spend, in units of 1e-12 rho."""

    select: int
    """For the selection of all its candidates."""
    measure: int
    """For measuring one of them."""


class Schedule(Protocol):
    """How many rounds there are, and what each may spend."""

    @property
    def rounds_left(self) -> int:
        """How many more rounds there are, as far as is known now."""

    def next_share(self) -> RoundShare:
        """What the next round may spend."""

    def note(self, *, learnt: bool) -> None:
        """Hear whether the round just finished changed the model more than noise would have."""


def schedule_of(plan: Rounds, door: Door, *, per_round: int) -> Schedule:
    """The schedule that a plan stands for; `per_round` candidates are measured in each round."""
    if isinstance(plan, AnnealedRounds):
        return Annealed(plan, door, per_round=per_round)
    return Equal(plan)


class Equal:
    """As many rounds as planned, all with the same share."""

    def __init__(self, plan: Rounds) -> None:
        self.rounds_left = plan.rounds
        self._share = RoundShare(plan.select, plan.measure)

    def next_share(self) -> RoundShare:
        """The same as ever."""
        self.rounds_left -= 1
        return self._share

    def note(self, *, learnt: bool) -> None:
        """What is learnt changes nothing."""


class Annealed:
    """Shares that grow until everything reserved is spent.

    What is left follows from the prices of the operations, also of those that a resumed job reads from
    its journal: should it train a slightly different model, it still never plans beyond the reserve.
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
        """As many as can be paid for at the present share; none, where not even the first could."""
        if self._left < self._least:
            return 0
        return min(self._most_rounds, max(1, self._left // self._cost(self._share)))

    def next_share(self) -> RoundShare:
        """The present share; everything that is left, where that would pay for less than two."""
        if self.rounds_left == 1:
            select = self._left * self._share.select // self._cost(self._share)
            self._share = RoundShare(select, (self._left - select) // self._per_round)
        self._most_rounds -= 1
        return self._share

    def note(self, *, learnt: bool) -> None:
        """Algorithm 4: half of sigma and twice epsilon are four times the rho of both."""
        if not learnt:
            self._share = RoundShare(4 * self._share.select, 4 * self._share.measure)

    @property
    def _left(self) -> int:
        return self._end - self._door.used

    def _cost(self, share: RoundShare) -> int:
        return share.select + self._per_round * share.measure
