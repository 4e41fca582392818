"""Spending plans of mechanisms. Amounts are units of 1e-12 rho."""

from dataclasses import dataclass

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.workload import Block, Blocks

ROW_COUNT_SHARE = 0.01
"""Share of the budget for counting the rows, if their number is private."""


@dataclass(frozen=True)
class Setting:
    """What is known before any budget is spent; a mechanism's choices may depend on nothing else."""

    schema: Schema
    protection: Protection
    units: int
    """The mechanism's budget, in units of 1e-12 rho."""
    expected_rows: int
    """The declared approximate number of rows."""
    asked: Blocks
    promised: tuple[Block, ...] = ()
    """Blocks that are measured in any case: the columns that `outputs.columns` adds."""
    row_count: int = 0
    """Units for counting the rows before the mechanism starts; 0 if their number is public."""


@dataclass(frozen=True)
class OneShot:
    """A plan in which everything is measured once."""

    measure: tuple[int, ...]
    """Units for measuring each block."""


@dataclass(frozen=True)
class Rounds:
    """A plan of T rounds of k selections and k measurements."""

    public: tuple[Block, ...]
    """Blocks whose counts no unit can change; they are read once, before the first round, at no cost."""
    opened: tuple[Block, ...]
    """Blocks of single columns that are measured once, before the first round."""
    opening: int
    """Units for measuring each of them."""
    rounds: int
    per_round: int
    select: int
    """Units for the one-shot selection of all k candidates of a round."""
    measure: int
    """Units for measuring one of them."""

    @property
    def total(self) -> int:
        """Units for everything."""
        return self.opening * len(self.opened) + self.for_rounds

    @property
    def for_rounds(self) -> int:
        """Units for all rounds."""
        return self.rounds * (self.select + self.per_round * self.measure)


@dataclass(frozen=True)
class AnnealedRounds(Rounds):
    """A plan of at most T rounds; `select` and `measure` are those of the first.

    After a round that changed the model no more than noise would have, each round costs four times as
    much. The last one spends what is left. Together they never spend more than is reserved.
    """

    reserved: int
    """Units for all rounds."""

    @property
    def for_rounds(self) -> int:
        """Units for all rounds: at most what is reserved."""
        return self.reserved


@dataclass(frozen=True)
class Draws:
    """A plan of T rounds of draws by the query player of a game."""

    per_round: int
    """Independent draws in each round."""
    prices: tuple[int, ...]
    """Units of one draw, round by round."""


Plan = OneShot | Rounds | Draws
"""How a mechanism spends its budget."""
