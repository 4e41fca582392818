"""The expected error of what is delivered, the warnings, and other budgets."""

from typing import Any

import pytest

from scrim.spec.mechanism import MECHANISMS
from scrim.spec.preview import AccuracyTarget
from scrim.spec.release import AskedRelease
from synth.planning.choice import Resolved, resolve
from synth.planning.forecast import Forecast, forecast
from synth.planning.forecast_budgets import BudgetPoint, Budgets, is_reached, thinned
from synth.planning.forecast_warnings import of_counted_rows
from synth.planning.reference import ReferenceTable, noise_left, rows_below, sampling_error
from synth.planning.subject import Subject
from tests.support import ADD_REMOVE, coded_schema

NARROW = {f"c{position}": 2 + position for position in range(6)}
WIDE = {f"c{position}": 2 + position % 10 for position in range(60)}
DELTA = 1e-9
LARGE = 10**15
"""More budget than any search needs, in units."""


def resolved_of(sizes: dict[str, int], **changes: Any) -> tuple[Resolved, Subject]:
    body = {
        "workload": [{"type": "marginals", "k": 2}],
        "mechanism": {"name": "auto"},
        "budget": {"epsilon": 1.0},
        **changes,
    }
    schema = coded_schema(sizes)
    resolved = resolve(AskedRelease.model_validate(body), schema, ADD_REMOVE, DELTA)
    return resolved, Subject("rows", schema, ADD_REMOVE)


def forecast_of(sizes: dict[str, int], **changes: Any) -> Forecast:
    return forecast(*resolved_of(sizes, **changes))


def budgets_of(sizes: dict[str, int], **changes: Any) -> Budgets:
    return Budgets(*resolved_of(sizes, **changes), DELTA)


def types_of(sizes: dict[str, int], **changes: Any) -> set[str]:
    resolved, subject = resolved_of(sizes, **changes)
    found = Budgets(resolved, subject, DELTA).warnings(forecast(resolved, subject))
    return {warning.type.removeprefix("/warnings/") for warning in found}


# Reference tables ---------------------------------------------------------------------------------


def test_noise_is_left_in_large_cells_and_no_more_than_the_cells_hold() -> None:
    shape = ReferenceTable(100, 1.0)
    errors = [noise_left(shape, noise) for noise in (1e-6, 1e-4, 1e-2, 0.5, 1.0)]
    assert errors == sorted(errors)
    assert errors[0] == pytest.approx(100 * 1e-6, rel=0.1)
    assert errors[-1] == 1
    assert 0 <= rows_below(shape, 1e-6) < rows_below(shape, 0.1) <= 1


def test_drawing_more_rows_errs_less() -> None:
    few, many = (sampling_error(ReferenceTable(50, 1.0), rows) for rows in (100, 10_000))
    assert 0 < many < few / 5
    assert sampling_error(ReferenceTable(1, 1.0), 10) == 0


# Expected errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [m.catalogue_name() for m in MECHANISMS if not m.needs_public_data and not m.two_level],
)
def test_every_mechanism_has_expected_errors(name: str) -> None:
    found = [
        forecast_of(NARROW, mechanism={"name": name}, budget={"epsilon": epsilon}).expected
        for epsilon in (0.1, 1.0, 10.0)
    ]
    for each in found:
        assert each.mean_total_variation is not None
        assert 0 < each.mean_absolute_error <= each.max_error
    assert (
        found[0].mean_absolute_error > found[1].mean_absolute_error > found[2].mean_absolute_error
    )
    assert found[0].max_error > found[2].max_error


def test_queries_that_are_not_tables_have_no_variation() -> None:
    ranges = {"type": "ranges", "k": 2, "count": 20, "seed": 1}
    pairs = {"type": "marginals", "k": 2}
    found = forecast_of(NARROW, mechanism={"name": "private_gsd"}, workload=[ranges, pairs])
    of_ranges, of_pairs = (item.expected for item in found.items)
    assert of_ranges.mean_total_variation is None
    assert 0 < of_ranges.mean_absolute_error < of_ranges.max_error <= 1
    assert found.expected.mean_total_variation == of_pairs.mean_total_variation
    assert found.expected.max_error == max(of_ranges.max_error, of_pairs.max_error)


def test_more_rows_err_less() -> None:
    few, many = (forecast_of(NARROW, expected_rows=rows).expected for rows in (2_000, 200_000))
    assert few.mean_absolute_error > 3 * many.mean_absolute_error


@pytest.mark.parametrize("name", ["generative_network", "aim", "mwem", "gem", "private_gsd"])
def test_the_largest_error_exceeds_the_mean_where_noise_is_negligible(name: str) -> None:
    """What a model misses, and drawing rows, move the largest cell of a table most."""
    found = forecast_of(NARROW, mechanism={"name": name}, expected_rows=10**8).expected
    assert found.max_error > 1.3 * found.mean_absolute_error


# Warnings -----------------------------------------------------------------------------------------


def test_all_pairs_of_sixty_columns_on_few_rows_are_lost() -> None:
    """The warnings say what will be lost, and name an epsilon that would keep it."""
    resolved, subject = resolved_of(WIDE, expected_rows=5_000)
    found = Budgets(resolved, subject, DELTA).warnings(forecast(resolved, subject))
    first = found[0]
    assert first.type == "/warnings/relations-not-kept"
    assert "Relations between columns will not be kept at this budget" in first.detail
    assert "or epsilon " in first.detail


def test_a_comfortable_release_has_no_warnings() -> None:
    assert types_of(NARROW, expected_rows=1_000_000) == set()


def test_tiny_budgets_measure_single_columns_only() -> None:
    found = types_of(WIDE, expected_rows=500, budget={"epsilon": 0.01})
    assert {"single-columns-only", "relations-not-kept"} <= found


def test_noise_above_most_cells_is_told() -> None:
    changes: dict[str, Any] = {"budget": {"epsilon": 0.1}, "expected_rows": 500}
    assert "cells-below-noise" in types_of(NARROW, **changes)


@pytest.mark.parametrize(("rows", "is_told"), [(100_000, False), (500, True)])
def test_noise_on_parts_of_marginals_is_told_as_that_of_their_counts(
    rows: int, is_told: bool
) -> None:
    """The values of a part of 20 by 20 cells are 400 times as large as counts, and so is their noise."""
    pairs = {f"c{position}": 20 for position in range(6)}
    found = types_of(pairs, mechanism={"name": "gaussian"}, expected_rows=rows)
    assert ("cells-below-noise" in found) == is_told


def test_repeated_rows_are_told() -> None:
    gsd = {"name": "private_gsd"}
    assert "few-distinct-rows" in types_of(NARROW, mechanism=gsd)
    assert "few-distinct-rows" not in types_of(NARROW, mechanism=gsd, outputs={"rows": 1000})


@pytest.mark.parametrize("name", ["rap_plus_plus", "dual_query", "fem"])
def test_models_of_few_rows_are_told(name: str) -> None:
    few = {"mechanism": {"name": name}, "outputs": {"rows": 20_000}, "expected_rows": 5_000}
    assert "few-distinct-rows" in types_of(NARROW, **few)
    assert "few-distinct-rows" not in types_of(NARROW, **{**few, "outputs": {"rows": 10}})


@pytest.mark.parametrize(
    ("declared", "counted", "sigma", "told"),
    [
        (50_000, 6_212, 30.0, "too small"),
        (1_000, 6_212, 30.0, "too large"),
        (10_000, 6_212, 30.0, None),
        (4_000, 6_212, 30.0, None),
        (13_000, 6_212, 0.0, "too small"),
        (13_000, 6_212, 500.0, None),
        (3_000, 6_212, 500.0, None),
    ],
)
def test_a_declared_number_far_from_the_counted_one_is_told(
    declared: int, counted: int, sigma: float, told: str | None
) -> None:
    """Only if it is more than the noise of the count."""
    resolved, _ = resolved_of(NARROW, expected_rows=declared)
    found = list(of_counted_rows(resolved.release, counted, sigma=sigma, noun="rows"))
    assert [each.type for each in found] == ["/warnings/expected-rows-far-off"] * (told is not None)
    for each in found:
        assert f"expected_rows is {declared:,}: the forecast errors were {told}" in each.detail
        assert "set expected_rows to 6,200" in each.detail


def test_every_warning_is_one_sentence() -> None:
    resolved, subject = resolved_of(WIDE, expected_rows=1000, mechanism={"name": "aim"})
    for warning in Budgets(resolved, subject, DELTA).warnings(forecast(resolved, subject)):
        assert warning.type.startswith("/warnings/")
        assert warning.detail[0].isupper()
        assert warning.detail.endswith(".")


# Other budgets ------------------------------------------------------------------------------------


def test_the_curve_falls_with_the_budget() -> None:
    points = budgets_of(NARROW).curve([3.0, 0.1, 1.0, 0.1])
    assert [point.epsilon for point in points] == [0.1, 1.0, 3.0]
    errors = [point.expected.mean_absolute_error for point in points]
    assert errors == sorted(errors, reverse=True)
    assert [point.rho for point in points] == sorted(point.rho for point in points)


def test_the_needed_budget_reaches_the_target_and_half_of_it_does_not() -> None:
    budgets, target = (
        budgets_of(NARROW, expected_rows=5000),
        AccuracyTarget(mean_total_variation=0.05),
    )
    found = budgets.needed(target, left=LARGE)
    assert isinstance(found, BudgetPoint)
    assert is_reached(target, found.expected)
    assert not is_reached(target, budgets.at(found.epsilon / 2).expected)


def test_what_is_left_bounds_the_needed_budget() -> None:
    budgets = budgets_of(NARROW, expected_rows=5000)
    target = AccuracyTarget(max_error=1e-4)
    found = budgets.needed(target, left=10**9)
    assert isinstance(found, str)
    assert "not expected to be reached" in found
    assert budgets.needed(target, left=0) == "the population has no budget left"


def test_large_requests_plan_fewer_budgets() -> None:
    asked = [{"type": "marginals", "k": 3, "count": 6000, "seed": 1}]
    budgets = budgets_of({f"c{position}": 3 for position in range(60)}, workload=asked)
    epsilons = [0.1 * 1.3**step for step in range(20)]
    assert len(budgets.curve(epsilons)) == budgets.most < 20
    assert "too large for a search" in str(
        budgets.needed(AccuracyTarget(max_error=0.1), left=LARGE)
    )


def test_thinning_keeps_the_ends() -> None:
    assert thinned([1, 2, 3, 4, 5], 3) == [1, 3, 5]
    assert thinned([1, 2], 3) == [1, 2]
    assert thinned([1, 2, 3], 1) == [1]
    assert thinned([1, 2, 3], 0) == []
