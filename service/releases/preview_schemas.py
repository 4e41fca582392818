"""Answers to previews. The body is scrim.spec.preview.PreviewRequest."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from scrim.spec.budget import rho_of_units
from scrim.spec.choice import MechanismChoice
from service.data.ledger.records import LedgerAccount
from service.data.views import View
from service.releases.schemas import EXAMPLE, WarningView
from synth.planning.accounting import Method
from synth.planning.choice import Resolved
from synth.planning.constants import REACH
from synth.planning.expected import Expected
from synth.planning.forecast import Forecast
from synth.planning.forecast_budgets import BudgetPoint
from synth.planning.forecast_warnings import Warning, warn

PREVIEW_EXAMPLE = {
    **EXAMPLE,
    "budgets": [{"epsilon": 0.1}, {"epsilon": 1.0}, {"epsilon": 10.0}],
    "target": {"mean_total_variation": 0.03},
}


class ErrorsView(View):
    """Errors as shares of the rows."""

    mean_absolute_error: float
    """The mean over all queries."""
    mean_total_variation: float | None
    """The mean over all tables: half the summed errors of the cells of a table. Null if nothing asked is a
    table of marginals."""
    max_error: float
    """The largest error of a query."""


class ExpectedView(ErrorsView):
    """The expected errors of what is delivered: of the released rows, or of the answers if there are none."""

    mean_absolute_rows: float
    """The mean absolute error as a number of rows, by the declared `expected_rows`."""
    max_rows: float
    """The largest error as a number of rows."""
    low: ErrorsView
    """The lower end of the range in which about 80% of similar releases fell."""
    high: ErrorsView
    """The upper end of that range."""

    @classmethod
    def of(cls, expected: Expected, rows: int) -> "ExpectedView":
        """The view, with the range of errors."""
        return cls(
            mean_absolute_error=expected.mean_absolute_error,
            mean_total_variation=expected.mean_total_variation,
            max_error=expected.max_error,
            mean_absolute_rows=expected.mean_absolute_error * rows,
            max_rows=expected.max_error * rows,
            low=_times(expected, REACH.mean.low, REACH.largest.low),
            high=_times(expected, REACH.mean.high, REACH.largest.high),
        )


def _times(expected: Expected, mean: float, largest: float) -> ErrorsView:
    far = expected.mean_total_variation
    return ErrorsView(
        mean_absolute_error=_end(expected.mean_absolute_error, mean),
        mean_total_variation=None if far is None else _end(far, mean),
        max_error=_end(expected.max_error, largest),
    )


def _end(error: float, factor: float) -> float:
    """An end of the range. Only errors of noisy answers, which are not clipped, exceed one."""
    return error * factor if error > 1 else min(1.0, error * factor)


class ItemForecastView(View):
    """The forecast of one item of the workload."""

    item: int
    """Its position in the workload, counted from 0."""
    type: Annotated[str, Field(examples=["marginals"])]
    """Its type."""
    queries: int
    """The number of its counting queries."""
    sigma: float | None
    """Standard deviation of the noise on each measured count; the largest if they differ. For `gaussian`, the
    root mean square of the standard errors of the answers, in counts."""
    expected_error: float | None
    """Mean absolute error that this noise causes, in counts."""
    expected: ExpectedView
    """The expected errors of what is delivered for this item."""


class PointView(View):
    """The same release at another budget."""

    epsilon: float
    """The epsilon."""
    rho: float
    """What it converts to at the population's delta. A release of Gaussian noise alone may spend up to 1.3
    times as much for the same epsilon."""
    expected: ExpectedView
    """The expected errors with this budget."""

    @classmethod
    def of(cls, point: BudgetPoint, rows: int) -> "PointView":
        """The view."""
        return cls(
            epsilon=point.epsilon, rho=point.rho, expected=ExpectedView.of(point.expected, rows)
        )


class NeededView(View):
    """The smallest budget that is expected to reach the target."""

    epsilon: float
    """The epsilon, rounded up to two digits."""
    rho: float
    """What it converts to at the population's delta."""


class BinsView(View):
    """What places the edges of adaptive bins. It is part of the release's cost."""

    columns: list[str]
    """The columns whose edges are placed: those that declare adaptive bins, and numbers without bins that the
    release reads as cells."""
    share: float
    """The share of the release's budget that it takes."""
    rho: float
    """The same in rho."""


class DrawsView(View):
    """What `outputs.draws` adds to a release. It adds nothing to its cost in budget."""

    sets: int
    """The number of sets of rows in addition to `synthetic.csv`."""
    fits: int
    """The number of models that are fitted: the release takes about as many times as long as without them."""
    memory_bytes: int | None
    """The memory that they add, already part of the preview's `memory_bytes`; null if it is not known."""
    storage_bytes: int
    """The approximate size of all their files."""


class PreviewView(View):
    """The cost and the expected accuracy of a release. Neither data nor budget was used."""

    rho: float
    """The amount that the release would reserve."""
    epsilon: float
    """The epsilon that the release would guarantee at the population's delta, rounded up."""
    accounting: Method
    """How this epsilon is computed: `exact_gaussian`, from the exact curve of a release of Gaussian noise
    alone, or `zcdp`, converted from rho."""
    rho_left_after: float
    """What the population would have left; if negative, the release would be refused."""
    mechanism: dict[str, Any]
    """The mechanism and its parameters; the one that would be chosen, if `auto` is requested."""
    choice: MechanismChoice | None
    """Why this mechanism would be chosen, if `auto` is requested; otherwise null."""
    queries: int
    """The number of counting queries in the workload."""
    operations: int | None
    """The number of charged operations on the data, if it is known in advance; the maximum, if rounds
    are annealed."""
    memory_bytes: int | None
    """Approximate memory that a worker would need to fit the model, draw the rows and write the files,
    in addition to an idle worker's; null if it is not known in advance."""
    processor_seconds: float | None
    """About how long a worker would compute, on one processor; null if it is not known in advance."""
    bins: BinsView | None
    """What places the edges of adaptive bins; null if no released column has any."""
    draws: DrawsView | None
    """What further sets of rows add; null if `outputs.draws` asks for none."""
    expected: ExpectedView
    """The expected errors of what is delivered."""
    items: list[ItemForecastView]
    """The forecast of each item of the workload; last, of those about columns that only `outputs.columns`
    names."""
    left_out_columns: list[str]
    """The declared columns that would not be released, because no query mentions them."""
    rules: int
    """The number of the schema's rules about these columns; released rows follow all of them."""
    warnings: list[WarningView]
    """Limits of the release and reasons why it would be refused, each with its remedy."""
    curve: list[PointView] = []
    """The release at each of the requested budgets, in the order of epsilon; fewer, with a warning, if the
    request is large."""
    needed: NeededView | None = None
    """The smallest budget that is expected to reach the target, within what the population has left; null
    if there is none, or if no target is given."""
    needed_reason: str | None = None
    """Why there is no such budget, if a target is given."""

    @classmethod
    def of(
        cls,
        resolved: Resolved,
        forecast: Forecast,
        account: LedgerAccount,
        *,
        delta: float,
        warnings: Sequence[Warning],
    ) -> "PreviewView":
        """Build the view from the plan, its forecast and the population's remaining budget."""
        release, units = resolved.release, resolved.funded.units
        left, rows = account.left_units, release.expected_rows
        return cls(
            rho=rho_of_units(units),
            epsilon=resolved.funded.epsilon(delta),
            accounting=resolved.funded.method(delta),
            rho_left_after=rho_of_units(left - units),
            mechanism=release.mechanism.model_dump(mode="json", exclude_none=True),
            choice=resolved.choice,
            queries=sum(item.queries for item in forecast.items),
            operations=forecast.operations,
            memory_bytes=resolved.plan.peak_bytes,
            processor_seconds=resolved.plan.seconds,
            bins=_bins(resolved),
            draws=resolved.plan.redraws and DrawsView(**vars(resolved.plan.redraws)),
            expected=ExpectedView.of(forecast.expected, rows),
            items=[
                ItemForecastView(
                    item=position,
                    **{**vars(item), "expected": ExpectedView.of(item.expected, rows)},
                )
                for position, item in enumerate(forecast.items)
            ],
            left_out_columns=resolved.plan.left_out,
            rules=len(resolved.plan.schema.rules),
            warnings=[WarningView.of(each) for each in (*_of_budget(units, left), *warnings)],
        )


def _bins(resolved: Resolved) -> BinsView | None:
    binning = resolved.plan.binning
    if binning is None:
        return None
    units = binning.each * len(binning.blocks)
    return BinsView(
        columns=binning.columns,
        share=round(units / resolved.funded.units, 6),
        rho=rho_of_units(units),
    )


def _of_budget(units: int, left: int) -> list[Warning]:
    if units <= left:
        return []
    return [
        warn(
            "budget-exceeded",
            f"The population has {rho_of_units(left):g} rho left, so this release would be refused: use a "
            "smaller budget.",
        )
    ]
