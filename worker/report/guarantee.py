"""What a price in zCDP means for one person, as a bound on guessing.

If a release is (epsilon, delta)-differentially private, a test that is wrong about at most a share `a`
of those who are not in the table is right about at most
min(e^epsilon a + delta, 1 - e^-epsilon (1 - delta - a)) of those who are (Wasserman, Zhou 2010;
Kairouz, Oh, Viswanath 2015). zCDP gives an epsilon for every delta, and all of these bounds hold.
"""

import math

from scrim.spec.budget import epsilon_of_units

WRONG = (0.01, 0.05, 0.10)
"""Rates of false alarms: guesses that a person is in the table who is not."""
_DELTAS = tuple(10 ** (-step / 8) for step in range(1, 97))


def right_at_most(units: int, wrong: float) -> float:
    """Upper bound on the rate of correct guesses about people in the table."""
    bounds = [1.0]
    for delta in _DELTAS:
        epsilon = epsilon_of_units(units, delta)
        if epsilon < 700:  # beyond, e^epsilon has no float, and bounds nothing
            bounds.append(math.exp(epsilon) * wrong + delta)
        bounds.append(1 - math.exp(-epsilon) * (1 - delta - wrong))
    return min(bounds)
