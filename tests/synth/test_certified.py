"""The certified quality of released rows: bounds, estimates, and the sentence about them."""

from typing import Any

import numpy as np
import pytest

from scrim.spec.population import Protection
from scrim.spec.quality import Quality
from synth.journal import MemoryJournal
from synth.queries import compile_workload
from synth.run import FinishedRelease, run
from synth.table import Table
from tests.support import (
    ADD_REMOVE,
    REPLACE_ONE,
    coded_schema,
    coded_table,
    random_rows,
    release,
)

SIZES = {"a": 3, "b": 4, "one": 1}
SCHEMA = coded_schema(SIZES)
ROWS = 400
TABLE = coded_table(SCHEMA, random_rows(SIZES, ROWS))
TABLES: dict[str, Any] = {"type": "marginals", "attributes": [["a"], ["a", "b"]]}
RANGES: dict[str, Any] = {"type": "ranges", "k": 2, "count": 5, "seed": 3}
RICH = 1000.0
"""At this rho the noise in a distance has a standard deviation of 0.00023; 0.003 is 13 of them."""


def carried_out(*items: dict[str, Any], rho: float = RICH, **changes: Any) -> FinishedRelease:
    certify = {"share": 0.5, "confidence": changes.pop("confidence", 0.95)}
    spec = release(
        {"name": "private_gsd", "rows": 100, "generations": 5},
        workload=list(items),
        budget={"rho": rho},
        outputs={"rows": 100, "certify": certify},
    )
    protection = changes.pop("protection", REPLACE_ONE)
    return run(spec, TABLE, protection=protection, delta=1e-9, **changes)


def quality_of(done: FinishedRelease) -> Quality:
    return Quality.model_validate(done.certificate["quality"])


def true_errors(done: FinishedRelease, item: dict[str, Any]) -> list[np.ndarray]:
    """The absolute errors of the fractions, block by block."""
    queries = compile_workload(release({"name": "pep"}, workload=[item]).workload, SCHEMA)
    assert done.rows is not None
    drawn = queries.count(Table(SCHEMA, [done.rows])) / 100
    return [np.abs(each) for each in queries.split(drawn - queries.count(TABLE) / ROWS)]


@pytest.mark.random
@pytest.mark.parametrize("protection", [REPLACE_ONE, ADD_REMOVE], ids=lambda p: str(p.relation))
def test_bounds_and_estimates_are_near_the_truth_with_a_large_budget(
    protection: Protection,
) -> None:
    found = carried_out(TABLES, RANGES, protection=protection)
    quality = quality_of(found)
    tables, ranges = true_errors(found, TABLES), true_errors(found, RANGES)
    distances = [each.sum() / 2 for each in tables]
    true = [np.mean(distances), np.mean(ranges)]
    for item, distance, number in zip(quality.items, true, (2, 5), strict=True):
        assert item.tables == number
        assert item.estimate == pytest.approx(distance, abs=0.003)
        assert item.estimate <= item.mean_total_variation <= item.estimate + 0.003
    whole = (sum(distances) + np.sum(ranges)) / 7
    assert quality.estimate == pytest.approx(whole, abs=0.003)
    first, second = quality.items
    assert quality.estimate == pytest.approx((2 * first.estimate + 5 * second.estimate) / 7)
    assert quality.mean_total_variation == pytest.approx(whole, abs=0.003)
    assert quality.max_error == pytest.approx(max(e.max() for e in (*tables, *ranges)), abs=0.003)
    ones = {name: true_errors(found, one_way(name))[0].sum() / 2 for name in "ab"}
    for column in quality.columns:
        assert column.estimate == pytest.approx(ones[column.name], abs=0.003)
        assert column.estimate <= column.total_variation <= column.estimate + 0.003
    assert [column.name for column in quality.columns] == ["a", "b"]
    assert (quality.left_out_columns, quality.share_of) == (["one"], "rows")


def one_way(name: str) -> dict[str, Any]:
    return {"type": "marginals", "attributes": [[name]]}


@pytest.mark.random
def test_the_certificate_begins_with_the_summary_and_keeps_the_largest_error() -> None:
    done = carried_out(TABLES)
    quality = quality_of(done)
    assert next(iter(done.certificate)) == "summary"
    assert done.certificate["summary"] == quality.summary
    assert done.certificate["certified_max_error"] == {
        "alpha": quality.max_error,
        "confidence": 0.95,
        "queries": 15,
    }
    assert quality.items[0].item == "marginals of a; a × b"


@pytest.mark.random
def test_a_release_that_certifies_nothing_says_nothing_about_quality() -> None:
    spec = release({"name": "pep", "rounds": 1})
    done = run(spec, TABLE, protection=REPLACE_ONE, delta=1e-9)
    assert [done.certificate[name] for name in ("summary", "quality", "certified_max_error")] == [
        None
    ] * 3


@pytest.mark.random
def test_a_tiny_budget_states_no_more_than_everything() -> None:
    quality = quality_of(carried_out(TABLES, rho=1e-7))
    bounds = [quality.max_error, quality.mean_total_variation, quality.estimate]
    bounds += [column.total_variation for column in quality.columns]
    assert all(0 <= bound <= 1 for bound in bounds)


@pytest.mark.random
def test_the_operations_of_the_certificate_are_journaled_and_replayed() -> None:
    journal = MemoryJournal()
    first = carried_out(TABLES, RANGES, rho=1.0, journal=journal)
    asked = [o.asked.partition(" of ")[0] for o in journal.operations() if o.kind == "certify"]
    assert asked == ["largest error", "total error", "total error", "total errors"]
    again = carried_out(TABLES, RANGES, rho=1.0, journal=MemoryJournal(journal.operations()))
    assert again.certificate == first.certificate


@pytest.mark.slow
@pytest.mark.statistical
def test_each_bound_covers_the_truth() -> None:
    """In at least 95% of 200 releases; 99.3% are expected, fewer than 190 have a probability below 1e-6."""
    covered = np.zeros(4, int)
    for seed in range(200):
        done = carried_out(TABLES, RANGES, rho=0.05, seed=seed)
        quality = quality_of(done)
        tables, ranges = true_errors(done, TABLES), true_errors(done, RANGES)
        distances = [each.sum() / 2 for each in tables]
        covered += [
            quality.items[0].mean_total_variation >= np.mean(distances),
            quality.items[1].mean_total_variation >= np.mean(ranges),
            quality.mean_total_variation >= (sum(distances) + np.sum(ranges)) / 7,
            quality.columns[0].total_variation >= distances[0],
        ]
    assert covered.min() >= 190
