"""Previews: the cost and the expected accuracy of a release, before anything is spent."""

from collections.abc import Iterator

from sqlalchemy.orm import Session

from scrim.spec.preview import PreviewRequest
from service.data.ledger.records import LedgerAccount
from service.releases.preview_schemas import NeededView, PointView, PreviewView
from service.releases.schemas import WarningView
from service.releases.service import NamedData, budgets_of, find_and_resolve, needed_data
from synth.planning.forecast import forecast
from synth.planning.forecast_budgets import BudgetPoint, Budgets
from synth.planning.forecast_warnings import Warning, warn


def preview(session: Session, body: PreviewRequest, *, memory_bytes: int | None) -> PreviewView:
    """Forecast a release, also at other budgets; uses neither data nor budget."""
    named, account, resolved = find_and_resolve(session, body, memory_bytes)
    found, budgets = forecast(resolved, named.subject), budgets_of(named, resolved)
    view = PreviewView.of(
        resolved,
        found,
        account,
        delta=named.population.delta,
        warnings=[*budgets.warnings(found), *_of_datasets(named, dry_run=body.dry_run)],
    )
    return view.model_copy(update=_compared(body, budgets, account, view.warnings))


def _of_datasets(named: NamedData, *, dry_run: bool) -> Iterator[Warning]:
    """Warn about datasets that are not ready."""
    for kind, dataset in needed_data(named, dry_run=dry_run):
        if dataset.state != "ready":
            yield warn(
                "dataset-not-ready",
                f"The {kind} is {dataset.state}, so this release would be refused: upload its rows, or wait "
                "until it is ready.",
            )


def _compared(
    body: PreviewRequest, budgets: Budgets, account: LedgerAccount, warnings: list[WarningView]
) -> dict[str, object]:
    """The fields about other budgets."""
    rows = body.expected_rows
    curve = budgets.curve([each.epsilon for each in body.budgets])
    found: dict[str, object] = {"curve": [PointView.of(point, rows) for point in curve]}
    asked = len({each.epsilon for each in body.budgets})
    if len(curve) < asked:
        fewer = warn(
            "fewer-budgets",
            f"Only {len(curve)} of {asked} budgets are forecast, because the request is large or some "
            "budgets are too small to be divided: compare fewer budgets, or ask for fewer tables.",
        )
        found["warnings"] = [*warnings, WarningView.of(fewer)]
    if body.target is not None:
        needed = budgets.needed(body.target, left=account.left_units)
        if isinstance(needed, BudgetPoint):
            found["needed"] = NeededView(epsilon=needed.epsilon, rho=needed.rho)
        else:
            found["needed_reason"] = needed
    return found
