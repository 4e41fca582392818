"""Standard errors of a model's answers: where they come from, and when they are wider."""

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from scrim.spec.workload import Marginals, Ranges, expand
from synth.domain import Domain
from synth.measurements import Measurement
from synth.models.error_bars import (
    ASSUMED,
    FOLLOWED,
    GRAIN,
    LEAST_DEVIATION,
    ErrorBars,
)
from synth.models.histogram import Histogram
from synth.models.released import ReleasedModel
from synth.models.rows import Rows
from synth.queries import Marginal, QuerySet, compile_blocks
from tests.support import coded_schema

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
DOMAIN = Domain.of(SCHEMA)
UNIFORM = Histogram.uniform(DOMAIN)
N = 24_000
SIGMA = 10.0
NOTHING = QuerySet([])


def table(names: str) -> Marginal:
    return Marginal.of(list(names), DOMAIN)


def measured(names: str, *, sigma: float = SIGMA, off: float = 0.0) -> Measurement:
    """Counts that differ from the uniform model by a number of rows."""
    block = table(names)
    return Measurement(block, np.full(block.size, N / block.size + off), sigma)


def bars(
    measurements: Sequence[Measurement], *, candidates: Sequence[str] = (), rows_sigma: float = 0.0
) -> ErrorBars:
    return ErrorBars.of(
        UNIFORM,
        measurements,
        rows=N,
        rows_sigma=rows_sigma,
        candidates=QuerySet(table(names) for names in candidates),
    )


def errors(found: ErrorBars, names: str, count: float | None = None) -> float:
    """The standard error of each cell of a table, all of which hold the same count."""
    block = table(names)
    counts = np.full(block.size, N / block.size if count is None else count)
    of_counts = found.of_counts(QuerySet([block]), counts, rows=N)
    assert np.all(of_counts == of_counts[0])
    return float(of_counts[0])


class TestMeasured:
    def test_a_large_cell_has_the_noise_of_its_measurement(self) -> None:
        found = errors(bars([measured("ab")]), "ab", count=1e6)
        assert found == pytest.approx(math.hypot(FOLLOWED * SIGMA, LEAST_DEVIATION), rel=1e-3)

    def test_a_sum_of_cells_has_the_noise_of_all_of_them(self) -> None:
        found = errors(bars([measured("abc")]), "a", count=1e6)
        assert found == pytest.approx(FOLLOWED * SIGMA * math.sqrt(12), rel=1e-2)

    def test_repeated_and_overlapping_measurements_combine(self) -> None:
        twice = errors(bars([measured("ab"), measured("ab")]), "ab", count=1e6)
        assert twice == pytest.approx(FOLLOWED * SIGMA / math.sqrt(2), rel=1e-2)
        both = errors(bars([measured("ab"), measured("ac")]), "a", count=1e6)
        assert both == pytest.approx(FOLLOWED * SIGMA / math.sqrt(1 / 3 + 1 / 4), rel=1e-2)

    def test_an_empty_cell_is_less_uncertain_and_never_certain(self) -> None:
        found = bars([measured("ab")])
        sizes = [errors(found, "ab", count) for count in (0, 1, 10, 100, 1000)]
        assert sizes == sorted(sizes) and 1 < sizes[0] < sizes[-1] / 4

    def test_a_count_without_noise_still_has_an_error(self) -> None:
        alone = bars([measured("ab", sigma=0.0)])
        assert 0 < errors(alone, "ab") < 1
        beside = bars([measured("ab", sigma=0.0), measured("c")])
        assert errors(alone, "ab") < errors(beside, "ab") < SIGMA

    def test_a_model_that_misses_its_measurements_is_less_certain(self) -> None:
        found = bars([measured("ab", off=3 * SIGMA)])
        assert found.misfit == pytest.approx(3)
        assert errors(found, "ab", 1e6) == pytest.approx(
            3 * errors(bars([measured("ab")]), "ab", 1e6), rel=1e-2
        )

    def test_cells_that_the_model_leaves_empty_count_if_they_certainly_hold_rows(self) -> None:
        empty = Histogram(DOMAIN, torch.zeros(DOMAIN.sizes, dtype=torch.float64))
        for value, misfit in ((4 * SIGMA, 1.0), (6 * SIGMA, 6.0)):
            counts = Measurement(table("a"), np.full(2, value), SIGMA)
            found = ErrorBars.of(empty, [counts], rows=N, rows_sigma=0.0, candidates=NOTHING)
            assert found.misfit == misfit


class TestNotMeasured:
    def test_a_relation_that_nothing_confirms_is_mostly_unknown(self) -> None:
        apart = [measured("a"), measured("b")]
        assert errors(bars(apart), "ab", 1e6) > ASSUMED * 1e6
        assert errors(bars(apart, candidates=["ab"]), "ab", 1e6) < 0.1 * ASSUMED * 1e6

    def test_a_chain_of_measurements_does_not_confirm_a_relation(self) -> None:
        chain = [measured("ab"), measured("bc")]
        assert bars(chain).kind_of(table("ac")) == "assumed"
        assert bars([*chain, measured("ac")]).kind_of(table("abc")) == "model"
        assert bars(chain).kind_of(table("ab")) == "measured"

    def test_it_is_less_certain_than_what_was_measured(self) -> None:
        pairs = [measured("ab"), measured("bc"), measured("ac")]
        triple = [*pairs, measured("abc")]
        assert errors(bars(pairs), "abc") > errors(bars(triple), "abc")

    def test_an_empty_range_is_less_certain_than_an_empty_cell(self) -> None:
        found = bars([measured("ab"), measured("c")], candidates=["ac"])
        (block,) = compile_blocks(
            expand([Ranges(type="ranges", queries=[{"a": [0, 1], "c": [0, 1]}])], SCHEMA), SCHEMA
        ).blocks
        (of_range,) = found.of_counts(QuerySet([block]), np.zeros(1), rows=N)
        assert of_range > 1.5 * errors(found, "ac", 0.0)

    def test_nothing_measured_still_gives_an_error(self) -> None:
        assert errors(bars([]), "ab") > 0


def test_ranges_over_a_measured_table_have_the_noise_of_about_as_many_cells() -> None:
    (block,) = compile_blocks(
        expand([Ranges(type="ranges", queries=[{"c": [0, 1]}])], SCHEMA), SCHEMA
    ).blocks
    asked = QuerySet([block])
    (half,) = bars([measured("c")]).of_counts(asked, np.array([N / 2]), rows=N)
    assert half == pytest.approx(FOLLOWED * SIGMA, rel=1e-2)
    itself = Measurement(block, UNIFORM.answer(asked).values * N, SIGMA)
    (known,) = bars([itself]).of_counts(asked, np.array([N / 2]), rows=N)
    assert known == pytest.approx(FOLLOWED * SIGMA, rel=1e-2)


def test_a_model_of_few_rows_answers_no_finer_than_one_of_them() -> None:
    chunk = {name: np.zeros(100, dtype=np.int64) for name in SIZES}
    found = ErrorBars.of(
        Rows(SCHEMA, chunk), [], rows=N, rows_sigma=0.0, candidates=NOTHING, drawn_rounds=8
    )
    assert found.grain == N / 100
    assert errors(found, "ab", 0.0) > GRAIN * N / 100
    assert errors(found, "ab", 1000.0) > 500


def with_bars(error_bars: ErrorBars) -> ReleasedModel:
    return ReleasedModel(SCHEMA, N, UNIFORM, error_bars=error_bars)


def test_counts_have_the_noise_of_the_number_of_rows_and_shares_do_not() -> None:
    workload = [Marginals(type="marginals", attributes=[["a"]])]
    plain, noisy = (
        with_bars(bars([measured("a")], rows_sigma=sigma)).answer(workload)
        for sigma in (0.0, 100.0)
    )
    assert plain.standard_errors is not None and noisy.standard_errors is not None
    np.testing.assert_array_equal(plain.standard_errors, noisy.standard_errors)
    assert plain.count_standard_errors is not None and noisy.count_standard_errors is not None
    np.testing.assert_allclose(plain.count_standard_errors, plain.standard_errors * N)
    np.testing.assert_allclose(
        noisy.count_standard_errors, np.hypot(plain.count_standard_errors, 50.0)
    )


def test_they_are_saved_with_the_model() -> None:
    found = bars([measured("ab", off=30.0), measured("c", sigma=0.0)], candidates=["ac"])
    assert ErrorBars.from_values(json.loads(json.dumps(found.to_values()))) == found
    released = with_bars(found)
    assert ReleasedModel.from_bytes(released.to_bytes()).error_bars == found


def test_a_file_without_them_leaves_standard_errors_unknown() -> None:
    old = ReleasedModel.from_bytes(ReleasedModel(SCHEMA, N, UNIFORM).to_bytes())
    answers = old.answer([Marginals(type="marginals", k=2)])
    assert answers.standard_errors is None and answers.count_standard_errors is None
