"""What every query class promises: all ways of answering agree, and with a count by hand.

To add a class, add one entry to GROUPS.
"""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.domain import Domain
from synth.models.histogram import Histogram
from synth.models.product import ProductMixture
from synth.models.support import Support
from synth.queries import Marginal, QueryGroup, QuerySet
from tests.support import coded_schema, coded_table, random_rows

SIZES = {"a": 2, "b": 3, "c": 4, "d": 1}
SCHEMA = coded_schema(SIZES)
DOMAIN = Domain.of(SCHEMA)
ROWS = np.array(random_rows(SIZES, 37))

GROUPS: dict[str, list[QueryGroup]] = {
    "marginals": [
        Marginal.of(names, DOMAIN) for k in (1, 2, 3, 4) for names in combinations(DOMAIN.names, k)
    ],
}


def by_hand(group: QueryGroup, rows: np.ndarray) -> list[int]:
    """Count a group's queries one row at a time, from their labels."""
    counts = dict.fromkeys(group.labels(SCHEMA), 0)
    for row in rows:
        cell = dict(zip(SIZES, row, strict=True))
        label = " & ".join(f"{name}={code_label(name, cell[name])}" for name in group.attributes)
        counts[label] += 1
    return list(counts.values())


def code_label(name: str, code: int) -> str:
    last = SIZES[name] - 1
    return (
        f"[{code}, {code}]"
        if code == last
        else f"[{code}, {code + 1})"
        if code < last - 1
        else f"[{code}, {last})"
    )


@pytest.fixture(params=GROUPS)
def queries(request: pytest.FixtureRequest) -> QuerySet:
    return QuerySet(GROUPS[request.param])


def test_counts_equal_a_count_by_hand(queries: QuerySet) -> None:
    counted = queries.split(queries.count(coded_table(SCHEMA, ROWS.tolist())))
    for group, counts in zip(queries.groups, counted, strict=True):
        assert counts.tolist() == by_hand(group, ROWS), group.name


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_order_of_the_groups_does_not_matter(data: st.DataObject) -> None:
    """Groups share tables whose attributes may come in any order."""
    for groups in GROUPS.values():
        chosen = data.draw(
            st.lists(st.sampled_from(groups), min_size=1, unique_by=lambda g: g.name)
        )
        queries = QuerySet(chosen)
        counted = queries.split(queries.count(coded_table(SCHEMA, ROWS.tolist())))
        for group, counts in zip(chosen, counted, strict=True):
            assert counts.tolist() == by_hand(group, ROWS), [g.name for g in chosen]


@pytest.mark.parametrize("chunk_rows", [1, 5, 37, 1000])
def test_chunks_do_not_matter(queries: QuerySet, chunk_rows: int) -> None:
    whole = queries.count(coded_table(SCHEMA, ROWS.tolist()))
    parts = queries.count(coded_table(SCHEMA, ROWS.tolist(), chunk_rows=chunk_rows))
    assert parts.tolist() == whole.tolist()


def test_no_rows_count_zero(queries: QuerySet) -> None:
    assert queries.count(coded_table(SCHEMA, [])).tolist() == [0] * queries.size


def support(rows: np.ndarray, weights: torch.Tensor) -> Support:
    return Support(
        DOMAIN, {n: torch.from_numpy(rows[:, j].copy()) for j, n in enumerate(SIZES)}, weights
    )


def test_rows_histogram_support_and_product_agree(queries: QuerySet) -> None:
    """The same distribution in four forms: a row is a product distribution that puts all on it."""
    counted = queries.count(coded_table(SCHEMA, ROWS.tolist())) / len(ROWS)
    equal = torch.full((len(ROWS),), 1 / len(ROWS), dtype=torch.float64)
    on_support = queries.on_support(support(ROWS, equal))
    histogram = Histogram.uniform(DOMAIN)
    histogram.weights.zero_().index_put_(
        tuple(torch.from_numpy(ROWS.T.copy())), equal, accumulate=True
    )
    one_hot = [np.eye(size)[ROWS[:, j]] for j, size in enumerate(SIZES.values())]
    mixture = ProductMixture(DOMAIN, torch.from_numpy(np.concatenate(one_hot, axis=1)))
    for answers in (on_support, queries.on_histogram(histogram), queries.on_product(mixture)):
        np.testing.assert_allclose(answers.numpy(), counted, atol=1e-12)


def test_product_answers_equal_the_mean_of_explicit_products(queries: QuerySet) -> None:
    generator = torch.Generator().manual_seed(1)
    blocks = [
        torch.rand(5, size, generator=generator, dtype=torch.float64) + 0.1
        for size in SIZES.values()
    ]
    blocks = [block / block.sum(1, keepdim=True) for block in blocks]
    explicit = torch.einsum("ka,kb,kc,kd->abcd", *blocks) / 5
    mixture = ProductMixture(DOMAIN, torch.cat(blocks, dim=1))
    expected = queries.on_histogram(Histogram(DOMAIN, explicit))
    torch.testing.assert_close(queries.on_product(mixture), expected)


def test_product_answers_are_differentiable(queries: QuerySet) -> None:
    probabilities = torch.rand(3, sum(SIZES.values()), dtype=torch.float64, requires_grad=True)

    def answers(values: torch.Tensor) -> torch.Tensor:
        return queries.on_product(ProductMixture(DOMAIN, values))

    assert torch.autograd.gradcheck(answers, probabilities)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(*(st.integers(0, s - 1) for s in SIZES.values())), max_size=20))
def test_any_rows_are_counted_right(rows: list[tuple[int, ...]]) -> None:
    for groups in GROUPS.values():
        counted = QuerySet(groups).split(QuerySet(groups).count(coded_table(SCHEMA, rows)))
        for group, counts in zip(groups, counted, strict=True):
            assert counts.tolist() == by_hand(group, np.array(rows).reshape(-1, len(SIZES)))


def test_labels_name_every_query_once(queries: QuerySet) -> None:
    for group in queries.groups:
        labels = list(group.labels(SCHEMA))
        assert len(labels) == len(set(labels)) == group.size


def test_names_are_unique(queries: QuerySet) -> None:
    assert len({group.name for group in queries.groups}) == len(queries.groups)


def test_every_query_is_located_in_its_group(queries: QuerySet) -> None:
    expected = [(g, i) for g, group in enumerate(queries.groups) for i in range(group.size)]
    assert [queries.locate(q) for q in range(queries.size)] == expected


def test_attributes_that_a_histogram_lacks_are_uniform() -> None:
    histogram = Histogram(
        DOMAIN.project(["b"]), torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    )
    answers = QuerySet([Marginal.of(["a", "b"], DOMAIN)]).on_histogram(histogram)
    assert answers.tolist() == [0.25, 0.125, 0.125] * 2
