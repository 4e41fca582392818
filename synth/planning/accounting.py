"""How much a release may spend for its epsilon, and which epsilon its plan guarantees.

A release of Gaussian noise alone is accounted by its exact curve (docs/privacy.md, section 2.9), every
other one by the conversion of zCDP (section 2.7).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

from scrim.spec.budget import MAX_RHO, UNITS_PER_RHO, Budget, epsilon_of_units
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from scrim.spec.workload import Block
from synth.planning.columns import Queries, list_queries
from synth.planning.curve import Moved, delta_at, epsilon_at, merge
from synth.planning.plan import ReleasePlan, plan, refuse_unsupported
from synth.planning.scale import gaussian_scale
from synth.planning.spending import OneShot

Method = Literal["exact_gaussian", "zcdp"]
RESERVE = 1e-6
"""Part of delta that a chosen budget leaves unused, so that rounding elsewhere cannot refuse it."""
MOST_CLASSES = 64
"""Largest number of different scales and shifts in one curve: its evaluation takes time for each."""
_MOST = 2.0
"""The search ends here; at delta 1e-6 or less the exact curve allows less than 1.3 times the conversion."""


@dataclass(frozen=True)
class GaussianOperation:
    """An operation of a plan that adds Gaussian noise, and what the worst neighbour moves in it."""

    kind: str
    moved: Moved


@dataclass(frozen=True)
class FundedPlan:
    """A plan, the amount that it may spend, and its Gaussian operations if it has no others."""

    units: int
    plan: ReleasePlan
    operations: tuple[GaussianOperation, ...] | None
    tested: tuple[float, float] | None = None
    """An epsilon and a delta that the exact curve was found to guarantee."""

    @cached_property
    def moves(self) -> tuple[Moved, ...] | None:
        """What the worst neighbour moves, if the exact curve applies."""
        if self.operations is None:
            return None
        return tuple(each.moved for each in self.operations)

    @property
    def scales(self) -> Counter[tuple[str, float]] | None:
        """How often each kind of operation with each scale may occur, if the exact curve applies."""
        if self.operations is None:
            return None
        return Counter((each.kind, each.moved.sigma) for each in self.operations)

    def method(self, delta: float) -> Method:
        """How epsilon is computed."""
        return "zcdp" if self._exact_epsilon(delta) is None else "exact_gaussian"

    def epsilon(self, delta: float, units: int | None = None) -> float:
        """The epsilon that is guaranteed at `delta`; of `units` that were spent, if given."""
        converted = epsilon_of_units(self.units if units is None else units, delta)
        exact = self._exact_epsilon(delta)
        bounds = [converted] if exact is None else [converted, exact]
        if self.tested is not None and delta >= self.tested[1]:
            bounds.append(self.tested[0])
        return min(bounds)

    def if_exact(self, epsilon: float, delta: float, *, reserve: float = 0) -> "FundedPlan | None":
        """This plan if its exact curve guarantees epsilon at `delta`; otherwise None."""
        if not self.moves or delta_at(self.moves, epsilon) > delta * (1 - reserve):
            return None
        return replace(self, tested=(epsilon, delta))

    def _exact_epsilon(self, delta: float) -> float | None:
        return _exact_epsilon(self.moves, delta, self.units) if self.moves else None


@lru_cache
def _exact_epsilon(moves: tuple[Moved, ...], delta: float, units: int) -> float | None:
    return epsilon_at(moves, delta, at_most=epsilon_of_units(units, delta))


def stated_epsilon(budget: Budget, units: int, delta: float) -> tuple[float, Method]:
    """The epsilon that a release with these reserved units guarantees, without its plan, and the method.

    A plan gets more units than the conversion allows only if its exact curve guarantees the epsilon that
    was asked for.
    """
    converted = epsilon_of_units(units, delta)
    if budget.epsilon is not None and budget.epsilon < converted:
        return budget.epsilon, "exact_gaussian"
    return converted, "zcdp"


def moves_of(
    release: ReleaseSpec, planned: ReleasePlan, schema: Schema, protection: Protection
) -> tuple[GaussianOperation, ...] | None:
    """The Gaussian operations of a plan; None if it has others, if their worst neighbour is not known, or if
    they differ too much for the curve to be computed in time.
    """
    if not isinstance(planned.spending, OneShot) or planned.split.screen or schema.is_linked:
        return None
    found = [*_around(release, planned, schema, protection)]
    measured: list[tuple[Block, int]] = list(
        zip(planned.measured, planned.spending.measure, strict=True)
    )
    if planned.binning is not None:
        measured += [(block, planned.binning.each) for block in planned.binning.blocks]
    for block, units in measured:
        sensitivity = block.sensitivity(schema, protection)
        if sensitivity.l2_squared == 0:
            continue
        sigma = gaussian_scale(sensitivity.l2_squared, units)
        if sensitivity.linf == 1:
            moved = Moved(sigma, shift=1, coordinates=sensitivity.l2_squared)
        elif block.size(schema) == 1:
            moved = Moved(sigma, shift=sensitivity.linf, coordinates=1)
        else:
            return None
        found.append(GaussianOperation("measure", moved))
    if len(merge([each.moved for each in found])) > MOST_CLASSES:
        return None
    return tuple(found)


def _around(
    release: ReleaseSpec, planned: ReleasePlan, schema: Schema, protection: Protection
) -> Iterator[GaussianOperation]:
    """Counting the rows and certifying."""
    performed = [("rows", [protection.row_count_sensitivity], planned.split.row_count)]
    if planned.certification is not None:
        assert release.synthetic_rows is not None
        performed += [
            ("certify", *moved)
            for moved in planned.certification.moves(schema, protection, release.synthetic_rows)
        ]
    for kind, moved, units in performed:
        if any(moved):
            sigma = gaussian_scale(sum(shift**2 for shift in moved), units)
            # No number moves farther than the one that moves farthest.
            yield GaussianOperation(kind, Moved(sigma, max(moved), len(moved)))


def fund(
    release: ReleaseSpec,
    schema: Schema,
    protection: Protection,
    delta: float,
    *,
    public: Schema | None = None,
    queries: Queries | None = None,
    units: int | None = None,
    left: int | None = None,
    columns: Sequence[str] | None = None,
) -> FundedPlan:
    """Plan a release with the most units that its budget allows, or with the `units` reserved for it.

    `schema` is the full declared schema; `columns` are the released columns, if they were already decided.

    An epsilon buys at least what the conversion of zCDP gives. What the exact curve gives beyond that is
    limited to what the population has `left`. Raises SpecError if the reserved units exceed the budget.
    """

    refuse_unsupported(release, schema, protection)
    # Listed once: the search below plans several times.
    queries = queries or list_queries(release, schema)

    def planned(amount: int) -> FundedPlan:
        found = plan(
            release, schema, protection, amount, public=public, queries=queries, columns=columns
        )
        return FundedPlan(amount, found, moves_of(release, found, schema, protection))

    converted, epsilon = release.budget.units(delta), release.budget.epsilon
    if units is not None and units != converted:
        exact = None
        if epsilon is not None and units > converted:
            exact = planned(units).if_exact(epsilon, delta)
        if exact is None:
            raise SpecError("the reserved amount is not what the budget of this release allows")
        return exact
    funded = planned(converted)
    if units is not None or epsilon is None or not funded.moves:
        return funded
    most = int(MAX_RHO) * UNITS_PER_RHO if left is None else left
    factor = _most_rho(funded.moves, epsilon, delta)
    for part in (1.0, 0.999, 0.99, 0.9, 0.5):
        # With more units a mechanism may measure other blocks, so every plan is checked by itself.
        more = min(most, int(converted * (1 + (factor - 1) * part)))
        if more <= converted:
            break
        if (better := planned(more).if_exact(epsilon, delta, reserve=RESERVE)) is not None:
            return better
    return funded


def _most_rho(moves: tuple[Moved, ...], epsilon: float, delta: float) -> float:
    """By which factor all prices may grow until the curve no longer guarantees epsilon."""
    classes = merge(moves)
    low, high = 1.0, _MOST
    while high - low > 1e-4:
        middle = (low + high) / 2
        scaled = [replace(moved, sigma=moved.sigma / middle**0.5) for moved in classes]
        if delta_at(scaled, epsilon) <= delta * (1 - 2 * RESERVE):
            low = middle
        else:
            high = middle
    return low
