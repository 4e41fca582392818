"""Queries about groups: counts by hand, mixtures by enumeration, and what is refused."""

import math
from itertools import combinations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scrim.spec.errors import SpecError
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload import GroupSizesBlock, HierarchicalBlock
from synth.domain import SIZE, at_place, domain_of_groups
from synth.models.group_types import GroupTypes
from synth.models.histogram import Histogram
from synth.models.product import ProductMixture
from synth.queries import (
    GroupSizeQueries,
    HierarchicalQueries,
    QuerySet,
    compile_blocks,
    hierarchical_products,
)
from tests.support import PROTECTIONS, coded_schema
from tests.synth.linked import (
    Household,
    by_hand,
    linked_table,
    random_households,
    two_level_schema,
)

SCHEMA = two_level_schema({"g": 2, "h": 3}, {"a": 2, "b": 2, "c": 3}, 3).linked
SPECS = [
    *(
        HierarchicalBlock(names, level)
        for k in range(5)
        for names in combinations(("g", "h", "a", "b", "c"), k)
        for level in ("group", "individual")
    ),
    GroupSizesBlock(()),
]
QUERIES = compile_blocks(SPECS, SCHEMA)
HOUSEHOLDS = random_households(SCHEMA, 60)


def counted(queries: QuerySet, households: list[Household], chunk_groups: int = 1000) -> list[int]:
    table = linked_table(SCHEMA, households, chunk_groups=chunk_groups)
    counts: list[int] = queries.count(table).tolist()
    return counts


def test_counts_equal_a_count_by_hand() -> None:
    found = QUERIES.split(counted(QUERIES, HOUSEHOLDS))
    for block, counts in zip(QUERIES.blocks, found, strict=True):
        assert counts == by_hand(block, HOUSEHOLDS), block.name


@pytest.mark.parametrize("chunk_groups", [1, 7])
def test_chunks_of_whole_groups_do_not_matter(chunk_groups: int) -> None:
    assert counted(QUERIES, HOUSEHOLDS, chunk_groups) == counted(QUERIES, HOUSEHOLDS)


def test_no_rows_count_zero() -> None:
    assert counted(QUERIES, []) == [0] * QUERIES.size
    empty = {
        name: column[:0] for name, column in next(linked_table(SCHEMA, HOUSEHOLDS).chunks()).items()
    }
    assert QUERIES.count(type(linked_table(SCHEMA, []))(SCHEMA, [empty])).sum() == 0


INDIVIDUAL = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 2))
HOUSEHOLD = st.tuples(
    st.tuples(st.integers(0, 1), st.integers(0, 2)),
    st.lists(INDIVIDUAL, min_size=1, max_size=3).map(tuple),
)


@settings(max_examples=30)
@given(st.lists(HOUSEHOLD, max_size=8), st.data())
def test_any_groups_are_counted_right_in_any_company(
    households: list[Household], data: st.DataObject
) -> None:
    chosen = data.draw(
        st.lists(st.sampled_from(QUERIES.blocks), min_size=1, max_size=4, unique=True)
    )
    some = QuerySet(chosen)
    found = some.split(counted(some, households, chunk_groups=data.draw(st.integers(1, 9))))
    for block, counts in zip(chosen, found, strict=True):
        assert counts == by_hand(block, households), block.name


def random_mixture(schema: LinkedSchema, components: int) -> ProductMixture:
    domain = domain_of_groups(schema)
    chance = torch.Generator().manual_seed(1)
    blocks = [
        torch.rand(components, size, generator=chance, dtype=torch.float64) ** 3
        for size in domain.sizes
    ]
    return ProductMixture(domain, torch.cat([b / b.sum(1, keepdim=True) for b in blocks], dim=1))


def enumerated(queries: QuerySet, mixture: ProductMixture, schema: LinkedSchema) -> list[float]:
    """Per group, over every group that there can be, with its probability."""
    of_groups, own = schema.group_attributes, schema.individual_attributes
    kinds = list(product(*(range(schema.sizes[name]) for name in own)))
    expected = np.zeros(queries.size)
    for row in mixture.probabilities:
        edges = np.cumsum([0, *mixture.domain.sizes])
        chance = {
            name: row[a:b].tolist()
            for name, a, b in zip(mixture.domain.names, edges, edges[1:], strict=False)
        }
        for group in product(*(range(schema.sizes[name]) for name in of_groups)):
            for size in range(1, schema.max_group_size + 1):
                for members in product(kinds, repeat=size):
                    probability = chance[SIZE][size - 1]
                    probability *= math.prod(
                        chance[name][code] for name, code in zip(of_groups, group, strict=True)
                    )
                    probability *= math.prod(
                        chance[at_place(name, place)][code]
                        for place, member in enumerate(members)
                        for name, code in zip(own, member, strict=True)
                    )
                    cells = [by_hand(query, [(group, members)]) for query in queries.blocks]
                    expected += probability * np.concatenate(cells)
    return list(expected / len(mixture.probabilities))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_product_answers_equal_the_mean_over_every_possible_group(size: int) -> None:
    of_groups, own = ({"g": 2, "h": 3}, {"a": 2, "b": 2}) if size < 3 else ({"g": 2}, {"a": 3})
    schema = two_level_schema(of_groups, own, size).linked
    names = [column.name for column in schema.attributes]
    specs = [
        HierarchicalBlock(chosen, level)
        for k in range(4)
        for chosen in combinations(names, k)
        for level in ("group", "individual")
    ]
    queries = compile_blocks([*specs, GroupSizesBlock(())], schema)
    mixture = random_mixture(schema, 2)
    answers = queries.on_product(mixture)
    np.testing.assert_allclose(answers.numpy(), enumerated(queries, mixture, schema), atol=1e-12)


def test_product_answers_are_differentiable() -> None:
    def answers(values: torch.Tensor) -> torch.Tensor:
        return QUERIES.on_product(ProductMixture(domain_of_groups(SCHEMA), values))

    assert torch.autograd.gradcheck(
        answers, random_mixture(SCHEMA, 2).probabilities.requires_grad_(), fast_mode=True
    )


def test_gradients_are_finite_where_an_individual_is_certain() -> None:
    """There is no division by the probability that there is none."""
    schema = two_level_schema({"g": 2}, {"a": 2}, 3).linked
    mixture = random_mixture(schema, 1)
    certain = torch.zeros_like(mixture.probabilities)
    certain[:, torch.cumsum(torch.tensor([0, *mixture.domain.sizes[:-1]]), 0)] = 1.0
    values = certain.float().requires_grad_()
    queries = compile_blocks([HierarchicalBlock(("g", "a"), "group")], schema)
    queries.on_product(ProductMixture(mixture.domain, values)).sum().backward()
    assert values.grad is not None and values.grad.isfinite().all()


def test_batches_of_components_and_computing_again_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = random_mixture(SCHEMA, 7).probabilities

    def answered() -> tuple[torch.Tensor, torch.Tensor]:
        given = values.clone().requires_grad_()
        hierarchical_products.products_of.cache_clear()
        answers = QUERIES.on_product(ProductMixture(domain_of_groups(SCHEMA), given))
        answers.square().sum().backward()
        assert given.grad is not None
        return answers.detach(), given.grad

    expected = answered()
    monkeypatch.setattr(hierarchical_products, "MAX_ENTRIES", 300)
    torch.testing.assert_close(answered(), expected)
    monkeypatch.setattr(hierarchical_products, "KEPT_TABLES", 0)
    torch.testing.assert_close(answered(), expected)


def test_rows_and_kinds_of_groups_agree() -> None:
    """The same groups as a table and as weights of their kinds."""
    types = GroupTypes.uniform(SCHEMA, list(SCHEMA.sizes))
    types.weights.zero_()
    for group, individuals in HOUSEHOLDS:
        kinds = sorted(int(np.ravel_multi_index(own, (2, 2, 3))) for own in individuals)
        kinds += [types.of_individuals.cells] * (SCHEMA.max_group_size - len(kinds))
        multiset = int((types.members == torch.tensor(kinds)).all(1).nonzero().item())
        cell = int(np.ravel_multi_index(group, (2, 3)))
        types.weights[multiset, cell] += 1 / len(HOUSEHOLDS)
    expected = np.array(counted(QUERIES, HOUSEHOLDS)) / len(HOUSEHOLDS)
    np.testing.assert_allclose(QUERIES.on_group_types(types).numpy(), expected, atol=1e-12)


def test_the_public_contract_tells_sizes_and_sensitivities() -> None:
    assert {type(spec) for spec in SPECS} == {HierarchicalBlock, GroupSizesBlock}
    for spec, block in zip(SPECS, QUERIES.blocks, strict=True):
        assert (spec.attributes, spec.size(SCHEMA)) == (block.attributes, block.size)
        for protection in PROTECTIONS[2:]:
            assert spec.sensitivity(SCHEMA, protection) == block.sensitivity(protection)


def test_labels_and_names_tell_queries_apart() -> None:
    for block in QUERIES.blocks:
        labels = list(block.labels(SCHEMA))
        assert len(labels) == len(set(labels)) == block.size
    assert len({block.name for block in QUERIES.blocks}) == len(QUERIES.blocks)
    table = HierarchicalQueries(("g", "a", "c"), SCHEMA, "group")
    assert table.name == "groups by g,a,c"
    assert next(table.labels(SCHEMA)) == "g=[0, 1) & contains (a=[0, 1) & c=[0, 1))"
    people = HierarchicalQueries(("g", "a"), SCHEMA, "individual")
    assert (people.name, list(people.labels(SCHEMA))[-1]) == (
        "individuals by g,a",
        "g=[1, 1] & a=[1, 1]",
    )
    assert list(HierarchicalQueries((), SCHEMA, "individual").labels(SCHEMA)) == ["any individual"]
    assert list(GroupSizeQueries((), SCHEMA).labels(SCHEMA)) == ["size=1", "size=2", "size=3"]


def test_models_of_rows_refuse_them() -> None:
    table = HierarchicalQueries(("g", "a"), SCHEMA, "group")
    with pytest.raises(SpecError):
        QuerySet([table]).on_histogram(Histogram.uniform(domain_of_groups(SCHEMA)))
    with pytest.raises(SpecError, match="only rows"):
        table.features(SCHEMA)
    with pytest.raises(SpecError, match="this is a single table"):
        compile_blocks([HierarchicalBlock(("g",), "group")], coded_schema({"g": 2}))
