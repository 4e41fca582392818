"""Plans of draws: the query player of a game draws queries with large errors; nothing is measured."""

from collections.abc import Sequence

from scrim.spec.budget import rho_of_units
from scrim.spec.errors import SpecError
from scrim.spec.workload import Block
from synth.planning.memory import DOUBLE, queries_of
from synth.planning.spending import Draws, Setting

MOST_ROUNDS = 1000
"""Largest default number of rounds, for any budget."""
REGRET_COPIES = 24
"""Counts, sums of answers, regrets of both signs, up to two copies of each, and intermediate values."""


def rounds_at(rate: float, per_round: int, setting: Setting) -> int:
    """The most rounds that the budget buys at that learning rate, for the expected number of rows.

    docs/privacy.md, section 4: rho = s eta^2 c^2 T(T-1)(2T-1) / (12 n^2).
    """
    bought = (
        rho_of_units(setting.units)
        * (setting.expected_rows / (rate * setting.protection.max_rows_per_unit)) ** 2
    )
    low, high = 2, MOST_ROUNDS
    while low < high:
        middle = (low + high + 1) // 2
        if per_round * squares_below(middle) <= 2 * bought:
            low = middle
        else:
            high = middle - 1
    return low


def squares_below(rounds: int) -> int:
    """0^2 + 1^2 + ... + (T-1)^2: the cost of T rounds in units of the first round's price."""
    return rounds * (rounds - 1) * (2 * rounds - 1) // 6


def growing_draws(rounds: int, per_round: int, units: int) -> Draws:
    """A plan for hedge draws: in the regret after t rounds, each row counts t times."""
    first = units // (per_round * max(1, squares_below(rounds)))
    _refuse_if_nothing_is_left(first, rounds, per_round)
    return Draws(per_round, tuple(past**2 * first for past in range(rounds)))


def even_draws(rounds: int, per_round: int, units: int) -> Draws:
    """A plan for draws that depend only on the newest error."""
    each = units // (rounds * per_round)
    _refuse_if_nothing_is_left(each, rounds, per_round)
    return Draws(per_round, (each,) * rounds)


def _refuse_if_nothing_is_left(units: int, rounds: int, per_round: int) -> None:
    if units < 1:
        raise SpecError(
            f"the budget is too small for {rounds} rounds of {per_round} draws; ask for fewer"
        )


def regret_bytes(measured: Sequence[Block], setting: Setting) -> int:
    """Memory of the query player, which holds several numbers per query."""
    return DOUBLE * REGRET_COPIES * queries_of(measured, setting.schema)
