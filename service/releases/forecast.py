"""What a release would cost and how accurate it would be, from public numbers alone."""

import math
from dataclasses import dataclass
from typing import Any

from service.ledger.records import Account
from service.releases.schemas import ItemForecast, Preview
from synth.spec.budget import epsilon_of_units, rho_of_units
from synth.spec.mechanism import AdaptiveSpec, MechanismSpec, OneShot, Rounds
from synth.spec.plan import measured_marginals, plan
from synth.spec.population import Protection
from synth.spec.release import ReleaseSpec
from synth.spec.schema import CategoricalColumn, Schema


@dataclass(frozen=True)
class _Steps:
    """What a mechanism does to the data."""

    operations: int | None
    measured: int | None
    """How many groups it measures at most."""
    measure_units: int | None
    """The price of one measurement; the lowest, where they differ."""


def forecast(
    release: ReleaseSpec,
    schema: Schema,
    protection: Protection,
    account: Account,
    *,
    delta: float,
    public: Schema | None,
) -> Preview:
    """A preview of a release; SpecError if it cannot work."""
    units = release.budget.units(delta)
    split = plan(release, schema, protection, units, public=public)
    candidates = measured_marginals(release, schema)
    sizes = _sizes(release, schema)
    cells = sum(_cells(marginal, sizes) for marginal in candidates)
    steps = _steps(
        release.mechanism.plan(candidates, split.mechanism),
        release.mechanism,
        candidates,
        cells=cells,
    )
    sigma = _sigma(release.mechanism, protection, steps.measure_units)
    items = [
        ItemForecast(
            item=position,
            type=item.type,
            queries=sum(_cells(marginal, sizes) for marginal in item.expand(schema)),
            sigma=sigma,
            # The mean of |x| under a Gaussian.
            expected_error=None if sigma is None else sigma * math.sqrt(2 / math.pi),
        )
        for position, item in enumerate(release.workload)
    ]
    around = (split.row_count > 0) + (split.screen > 0) + (split.certify > 0)
    return Preview(
        rho=rho_of_units(units),
        epsilon=epsilon_of_units(units, delta),
        rho_left_after=rho_of_units(account.left_units - units),
        queries=sum(item.queries for item in items),
        operations=None if steps.operations is None else steps.operations + around,
        memory_bytes=_memory_bytes(release, schema, candidates),
        items=items,
        warnings=_warnings(release, account, units, steps, len(candidates)),
    )


def _steps(
    plan: Any, mechanism: MechanismSpec, candidates: list[tuple[str, ...]], *, cells: int
) -> _Steps:
    groups = len(candidates)
    match plan:
        case OneShot():
            return _Steps(operations=groups, measured=groups, measure_units=min(plan.measure))
        case Rounds():
            by_query = isinstance(mechanism, AdaptiveSpec) and mechanism.select == "queries"
            per_round = min(plan.per_round, cells if by_query else groups)
            columns = {name for marginal in candidates for name in marginal}
            opening = len(columns) if plan.opening else 0
            return _Steps(
                operations=opening + plan.rounds * (1 + per_round),
                measured=None if by_query else min(groups, plan.rounds * per_round),
                measure_units=plan.measure,
            )
        case _:
            return _Steps(operations=None, measured=None, measure_units=None)


def _sigma(
    mechanism: MechanismSpec, protection: Protection, measure_units: int | None
) -> float | None:
    """The noise scale D2 / sqrt(2 rho) of one measurement (docs/privacy.md, sections 3 and 4)."""
    if measure_units is None:
        return None
    by_query = isinstance(mechanism, AdaptiveSpec) and mechanism.select == "queries"
    # A replaced row moves two cells of a marginal, but a single count by one at most.
    moved = 2 if protection.relation == "replace_one" and not by_query else 1
    sensitivity = math.sqrt(moved) * protection.rows
    return sensitivity / math.sqrt(2 * rho_of_units(measure_units))


def _warnings(
    release: ReleaseSpec, account: Account, units: int, steps: _Steps, groups: int
) -> list[str]:
    warnings = []
    if units > account.left_units:
        left = rho_of_units(account.left_units)
        warnings.append(f"the population has {left:g} rho left: this release would be refused")
    if steps.measured is not None and steps.measured < groups:
        warnings.append(
            f"at most {steps.measured} of {groups} marginals are measured; the others are answered "
            "from the model, with an error that the noise alone does not tell"
        )
    if release.mechanism.measure is not None:
        warnings.append(
            "the workload is answered from what mechanism.measure names; sigma is the noise there"
        )
    return warnings


def _memory_bytes(
    release: ReleaseSpec, schema: Schema, candidates: list[tuple[str, ...]]
) -> int | None:
    sizes = {
        column.name: column.size
        for column in schema.attributes
        if isinstance(column, CategoricalColumn) or column.bins is not None
    }
    asked = dict.fromkeys(marginal for item in release.workload for marginal in item.expand(schema))
    return release.mechanism.memory_bytes(sizes, candidates, list(asked))


def _sizes(release: ReleaseSpec, schema: Schema) -> dict[str, int]:
    asked = (marginal for item in release.workload for marginal in item.expand(schema))
    names = {name for marginal in asked for name in marginal}
    names |= {name for marginal in measured_marginals(release, schema) for name in marginal}
    return {name: schema.attribute(name).size for name in names}


def _cells(marginal: tuple[str, ...], sizes: dict[str, int]) -> int:
    return math.prod(sizes[name] for name in marginal)
