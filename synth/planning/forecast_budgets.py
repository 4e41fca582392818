"""Forecasts of the same release at other budgets, and the smallest budget for a target accuracy.

Every budget needs a plan of its own. How many are planned depends only on the size of the request, so that
a preview stays within a second.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from scrim.spec.budget import Budget, epsilon_of_units, rho_of_units
from scrim.spec.errors import SpecError
from scrim.spec.mechanism import Gaussian
from scrim.spec.preview import AccuracyTarget
from scrim.spec.schema import Schema
from scrim.spec.workload import expand
from synth.planning.accounting import FundedPlan
from synth.planning.choice import Resolved
from synth.planning.columns import Queries
from synth.planning.expected import Expected, together
from synth.planning.forecast import Forecast, expect
from synth.planning.forecast_warnings import (
    Warning,
    keeps_relations,
    loses_relations,
    relations_not_kept,
)
from synth.planning.plan import plan
from synth.planning.subject import Subject

MOST_WORK = 36_000
"""Blocks in all plans of a preview; more would take longer than half a second."""
WORK_OF_ANSWERS = 5
"""How much longer a block takes if shares are optimised."""
SEARCH_STEPS = 10
"""Plans of a search: the range of epsilon is halved as often on a logarithmic scale."""
STEPS_OF_WARNING, LEAST_STEPS = 6, 5
"""Plans of the search for the budget that a warning names; with fewer than the second there is no search."""
SMALLEST, LARGEST = 0.001, 100.0
"""The range of epsilon that is searched."""


@dataclass(frozen=True)
class BudgetPoint:
    """A budget, and the expected errors of the release with it."""

    epsilon: float
    rho: float
    expected: Expected


@dataclass(frozen=True)
class Budgets:
    """A resolved release that may get other budgets; `public` is the schema of its public data."""

    resolved: Resolved
    subject: Subject
    delta: float
    public: Schema | None = None

    @property
    def most(self) -> int:
        """How many budgets a preview may plan, the search included."""
        planned = self.resolved.plan
        # A block that several items ask for is forecast for each of them.
        asked = sum(map(len, planned.asked.items))
        blocks = 1 + asked + len(planned.measured)
        if isinstance(self.resolved.release.mechanism, Gaussian):
            blocks *= WORK_OF_ANSWERS
        return MOST_WORK // blocks

    def at(self, epsilon: float) -> BudgetPoint:
        """The release at this epsilon, converted to rho; SpecError if it cannot be planned."""
        release = self.resolved.release.model_copy(update={"budget": Budget(epsilon=epsilon)})
        units = release.budget.units(self.delta)
        schema, protection = self.subject.schema, self.subject.protection
        planned = plan(
            release, schema, protection, units, public=self.public, queries=self._queries
        )
        resolved = Resolved(release, FundedPlan(units, planned, None), None)
        return BudgetPoint(epsilon, rho_of_units(units), together(expect(resolved, self.subject)))

    @cached_property
    def _queries(self) -> Queries:
        """Those of the release, listed once for all budgets."""
        named = self.resolved.release.mechanism.measure or []
        return Queries(self.resolved.plan.asked, expand(named, self.subject.schema))

    def curve(self, epsilons: Sequence[float]) -> list[BudgetPoint]:
        """The points that a preview may plan, the smallest and the largest epsilon among them.

        Budgets that are too small for a plan are left out.
        """
        chosen = thinned(sorted(set(epsilons)), self.most)
        tried = [self._tried(epsilon) for epsilon in chosen]
        return [point for point in tried if point is not None]

    def needed(self, target: AccuracyTarget, *, left: int) -> BudgetPoint | str:
        """The smallest budget within `left` that is expected to reach the target, or why there is none."""
        steps = min(SEARCH_STEPS, self.most - 1)
        if steps < LEAST_STEPS:
            return "the request is too large for a search: ask for fewer tables, or compare budgets"
        most = min(LARGEST, epsilon_of_units(left, self.delta)) if left > 0 else 0.0
        if most <= SMALLEST:
            return "the population has no budget left"
        return self._search(partial(is_reached, target), most, steps)

    def warnings(self, found: Forecast) -> list[Warning]:
        """The warnings of a forecast, with the epsilon that would keep relations between columns."""
        if not loses_relations(found.expected):
            return list(found.warnings)
        steps = min(STEPS_OF_WARNING, self.most - 1)
        enough = self._search(keeps_relations, LARGEST, steps) if steps >= LEAST_STEPS else None
        epsilon = enough.epsilon if isinstance(enough, BudgetPoint) else None
        return [relations_not_kept(epsilon), *found.warnings]

    def _search(
        self, is_enough: Callable[[Expected], bool], most: float, steps: int
    ) -> BudgetPoint | str:
        """Halve the range of epsilon; the expected errors fall with the budget."""
        try:
            # Rounded down, so that the budget is within what is left.
            best = self.at(_rounded(most, math.floor))
        except SpecError as refused:
            return str(refused)
        if not is_enough(best.expected):
            return f"it is not expected to be reached with epsilon {best.epsilon:g}, the largest possible"
        low, high = math.log(SMALLEST), math.log(best.epsilon)
        for _ in range(steps):
            middle = (low + high) / 2
            tried = self._tried(_rounded(math.exp(middle), math.ceil))
            if tried is not None and is_enough(tried.expected):
                best, high = min(best, tried, key=lambda each: each.epsilon), middle
            else:
                low = middle
        return best

    def _tried(self, epsilon: float) -> BudgetPoint | None:
        """The point, or None if the budget is too small for a plan."""
        try:
            return self.at(epsilon)
        except SpecError:
            return None


def is_reached(target: AccuracyTarget, expected: Expected) -> bool:
    """Whether all errors that the target names are expected to be as small."""
    wanted = target.model_dump(exclude_none=True)
    found = {name: getattr(expected, name) for name in wanted}
    return all(error is not None and error <= wanted[name] for name, error in found.items())


def thinned(values: Sequence[float], most: int) -> list[float]:
    """At most that many of them, evenly spaced, with the first and the last."""
    if len(values) <= most:
        return list(values)
    if most < 2:
        return list(values[:most])
    last = len(values) - 1
    return [values[round(position * last / (most - 1))] for position in range(most)]


def _rounded(epsilon: float, rounding: Callable[[float], int]) -> float:
    """Two digits."""
    digits = 10.0 ** (math.floor(math.log10(epsilon)) - 1)
    return float(f"{rounding(epsilon / digits) * digits:.6g}")
