"""Weighted rows: distinct rows once, projected and reweighted like the histogram they stand for."""

import numpy as np
import pytest
import torch

from synth.domain import Domain
from synth.models import support as module
from synth.models.histogram import Histogram
from synth.models.support import Support
from synth.planning.memory import CACHED_BYTES
from synth.queries import Marginal, QuerySet
from tests.support import coded_schema, coded_table, random_rows

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
DOMAIN = Domain.of(SCHEMA)
ROWS = np.array(random_rows(SIZES, 200))


def of_rows() -> Support:
    return Support.of(coded_table(SCHEMA, ROWS.tolist(), chunk_rows=7))


def as_histogram(support: Support) -> Histogram:
    histogram = Histogram.uniform(DOMAIN)
    index = tuple(support.codes[name].long() for name in DOMAIN.names)
    histogram.weights.zero_().index_put_(index, support.weights, accumulate=True)
    return histogram


def test_each_distinct_row_once_with_its_share() -> None:
    support = of_rows()
    distinct, counts = np.unique(ROWS, axis=0, return_counts=True)
    rows = np.stack([support.codes[name].numpy() for name in SIZES], axis=1)
    order = np.lexsort(rows.T[::-1])
    assert rows[order].tolist() == distinct.tolist()
    np.testing.assert_allclose(support.weights.numpy()[order], counts / len(ROWS))


def test_rows_are_told_apart_in_domains_beyond_64_bits() -> None:
    sizes = {f"x{i}": 200 for i in range(12)}
    schema = coded_schema(sizes)
    rows = np.random.default_rng(0).integers(0, 200, size=(50, 12))
    support = Support.of(coded_table(schema, [*rows.tolist(), *rows[:20].tolist()]))
    assert sorted((support.weights * 70).round().tolist()) == [1.0] * 30 + [2.0] * 20


def test_projecting_keeps_the_answers() -> None:
    support = of_rows()
    queries = QuerySet([Marginal.of(["a", "b"], DOMAIN)])
    projected = support.project(["b", "a"])
    assert projected.domain.names == ("a", "b") and len(projected.weights) <= 6
    np.testing.assert_allclose(projected.answer(queries).values, support.answer(queries).values)


@pytest.mark.parametrize("cached", [0, CACHED_BYTES], ids=["no cache", "cache"])
def test_reweighting_equals_that_of_the_histogram(
    cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CACHED_BYTES", cached)
    support = of_rows()
    histogram = as_histogram(support)
    for attributes in (["a", "b"], ["c"], ["a", "b", "c"], ["a", "b"]):
        answers = histogram.marginal(attributes).flatten()
        factors = torch.linspace(0.5, 2, len(answers), dtype=torch.float64)
        for model in (support, histogram):
            model.reweight(attributes, answers, factors)
        torch.testing.assert_close(as_histogram(support).weights, histogram.weights)
    assert float(support.weights.sum()) == pytest.approx(1)
    assert (len(support._cells) > 0) == (cached > 0)


def test_attributes_that_the_rows_lack_are_uniform() -> None:
    support = of_rows().project(["b"])
    answers = support.answer(QuerySet([Marginal.of(["a", "b"], DOMAIN)])).values
    np.testing.assert_allclose(answers, np.tile(support.marginal(["b"]).numpy() / 2, 2))


def test_sampling_keeps_every_row_within_one_of_its_share() -> None:
    support = of_rows()
    drawn = support.sample(1000, np.random.default_rng(1))
    counts = QuerySet([Marginal.of(list(SIZES), DOMAIN)]).count(
        coded_table(SCHEMA, np.stack([drawn[name] for name in SIZES], axis=1).tolist())
    )
    assert np.abs(counts - 1000 * as_histogram(support).weights.numpy().ravel()).max() <= 1


def test_it_survives_saving() -> None:
    support = of_rows()
    loaded = Support.from_arrays(support.to_arrays(), rows=200, schema=SCHEMA)
    queries = QuerySet([Marginal.of(["a", "c"], DOMAIN)])
    np.testing.assert_allclose(
        loaded.answer(queries).values, support.answer(queries).values, atol=1e-6
    )


def test_rows_that_satisfy_a_query() -> None:
    support, block = of_rows(), Marginal.of(["a", "c"], DOMAIN)
    matching = support.codes["a"][block.matching(6, support)], support.codes["c"]
    assert set(matching[0].tolist()) == {1}
    assert set(matching[1][block.matching(6, support)].tolist()) == {2}
