"""How the `scrim` command shows previews."""

from collections.abc import Sequence

from scrim.display import note, show_json, show_table
from scrim.records import BinsCost, DrawsCost, Notice, Preview


def show_preview(found: Preview, *, as_json: bool) -> None:
    """Show everything that a preview says."""
    if as_json:
        show_json(found)
        return
    show_table(
        ["rho", "epsilon", "accounting", "rho left after", "queries", "operations", "seconds"],
        [
            (
                found.rho,
                found.epsilon,
                found.accounting,
                found.rho_left_after,
                found.queries,
                found.operations,
                found.processor_seconds,
            )
        ],
    )
    _show_expected(found)
    if found.choice is not None:
        chosen = found.mechanism["name"]
        show_table(["chosen", "because"], ((chosen, reason) for reason in found.choice.reasons))
        show_table(
            ["passed over", "because"],
            ((each.mechanism, each.reason) for each in found.choice.passed_over),
        )
    if found.bins is not None:
        show_bins(found.bins)
    if found.draws is not None:
        show_draws(found.draws)
    if found.curve:
        show_curve(found)
    if found.needed is not None or found.needed_reason is not None:
        show_needed(found)
    show_warnings(found.warnings)


def _show_expected(found: Preview) -> None:
    show_table(
        [
            "item",
            "queries",
            "noise (sigma, counts)",
            "expected mean error (rows)",
            "largest error (rows)",
            "mean total variation",
        ],
        (
            (
                each.item,
                each.queries,
                each.sigma,
                each.expected.mean_absolute_rows,
                each.expected.max_rows,
                each.expected.mean_total_variation,
            )
            for each in found.items
        ),
    )


def show_curve(found: Preview) -> None:
    """Show the compared budgets."""
    show_table(
        ["epsilon", "rho", "mean absolute error", "mean total variation", "max error"],
        (
            (
                each.epsilon,
                each.rho,
                each.expected.mean_absolute_error,
                each.expected.mean_total_variation,
                each.expected.max_error,
            )
            for each in found.curve
        ),
    )


def show_bins(cost: BinsCost) -> None:
    """Show what places the edges of adaptive bins."""
    note(
        f"The data choose the bins of {', '.join(cost.columns)}: {cost.share:.1%} of the budget places their "
        "edges."
    )


def show_draws(cost: DrawsCost) -> None:
    """Show what further sets of rows add."""
    memory = (
        "" if cost.memory_bytes is None else f"{cost.memory_bytes / 2**20:,.0f} MiB of memory, "
    )
    note(
        f"{cost.sets} further sets of rows: {cost.fits} models are fitted, which takes about {cost.fits} "
        f"times as long; {memory}{cost.storage_bytes / 2**20:,.1f} MiB of storage."
    )


def show_needed(found: Preview) -> None:
    """Show the budget for the target accuracy, or why there is none."""
    if found.needed is None:
        note(f"No budget: {found.needed_reason}.")
        return
    note(f"Expected to need epsilon {found.needed.epsilon:g} (rho {found.needed.rho:.3g}).")


def show_warnings(warnings: Sequence[Notice]) -> None:
    """Show warnings as notes."""
    for warning in warnings:
        note(f"Note: {warning.detail}")
