"""Screening public data: spend a small part of the budget to reject public data that cannot fit.

Paper: Liu et al. (2021), Leveraging Public Data for Practical Private Query Release, section 4: the
best-mixture error bounds what any weights on the public rows can achieve.
Departures: counts instead of fractions, and a linear program with a certified gap (docs/privacy.md,
section 5). Marginals with a column that the public data lack are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass

from scrim.spec.errors import PublicDataTooFar
from scrim.spec.mechanism import Screen
from synth.door import Door
from synth.models.support import Support
from synth.queries import QuerySet
from synth.table import Table


@dataclass(frozen=True)
class Screened:
    """The noisy best-mixture error, as a fraction of the rows."""

    error: float
    standard_error: float
    max_error: float
    queries: int


def screen_public_data(
    door: Door,
    screen: Screen,
    queries: QuerySet,
    public: Table,
    *,
    rows: int,
    budget: int,
    check: Callable[[], None],
) -> Screened:
    """Measure how closely weights on the public rows can answer; refuse them if the error is too large.

    `check` is called periodically and stops the search by raising.
    """
    support = Support.of(public)
    covered = QuerySet(
        block for block in queries.blocks if support.domain.size_of.keys() >= set(block.attributes)
    )
    found = door.best_mixture(
        covered,
        support.project(covered.attributes),
        rows=rows,
        budget=budget,
        check=check,
    )
    screened = Screened(found.value / rows, found.sigma / rows, screen.max_error, covered.size)
    if screened.error > screen.max_error:
        raise PublicDataTooFar(
            f"the best weights on the public rows leave an error of {screened.error:.4f}, measured "
            f"with a standard error of {screened.standard_error:.4f}; max_error allows "
            f"{screen.max_error:g}. Provide closer public data, raise mechanism.screen.max_error, "
            "or use a mechanism without public data; the unspent budget is returned"
        )
    return screened
