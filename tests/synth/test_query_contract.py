"""The contract of every query class: all ways of answering agree with a simple count.

To add a class, add one entry to GROUPS.
"""

import math
from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scrim.spec.errors import SpecError
from scrim.spec.workload import (
    BinaryTree,
    Block,
    Halfspaces,
    MarginalBlock,
    PartBlock,
    Prefixes,
    Ranges,
    expand,
)
from scrim.spec.workload.grid import GridBlock
from scrim.spec.workload.hierarchical import GroupSizesBlock, HierarchicalBlock
from synth.models.graphical import GraphicalModel
from synth.models.histogram import Histogram
from synth.models.product import ProductMixture
from synth.models.relaxed import RelaxedRows
from synth.models.support import Support
from synth.queries import ConjunctionQueries, QueryBlock, QuerySet, Single, compile_blocks
from synth.queries.query_set import COMPILERS
from synth.table import Table, store_numbers
from tests.support import PROTECTIONS
from tests.synth.query_reference import (
    DOMAIN,
    NAMES,
    ROW,
    ROWS,
    SCHEMA,
    Row,
    by_features,
    by_hand,
    codes_of,
    new_table,
    numbers_of,
    relaxed,
)

BLOCKS: dict[str, list[Block]] = {
    "marginals": [MarginalBlock(names) for k in (1, 2, 3, 4) for names in combinations(NAMES, k)],
    "binary trees": expand(
        [
            BinaryTree(type="binary_tree", k=1, levels=3),
            BinaryTree(type="binary_tree", k=2, levels=2),
            BinaryTree(
                type="binary_tree",
                levels=2,
                attributes=[["pay", "age"], ["age", "sex", "pay", "job"], ["pay", "one"]],
            ),
        ],
        SCHEMA,
    ),
    "ranges": expand(
        [
            Ranges(type="ranges", k=1, count=6, seed=5),
            Ranges(type="ranges", k=2, count=40, seed=1),
            Ranges(type="ranges", k=4, count=40, seed=4),
            Ranges(
                type="ranges",
                queries=[
                    {"pay": [-1.0, 3.0], "sex": "F"},
                    {"pay": [-0.5, 3.0]},
                    {"pay": [-1.0, 0.0], "age": [20.5, 24.0]},
                    {"job": None, "pay": None},
                ],
            ),
        ],
        SCHEMA,
    ),
    "prefixes": expand(
        [
            Prefixes(type="prefixes", count=60, seed=3),
            Prefixes(type="prefixes", count=20, seed=3, categorical=0, numeric=1),
        ],
        SCHEMA,
    ),
    "halfspaces": expand(
        [
            Halfspaces(type="halfspaces", count=40, seed=2**53 - 1),
            Halfspaces(type="halfspaces", count=600, seed=1),
        ],
        SCHEMA,
    ),
}
COMPILED: dict[str, list[QueryBlock]] = {
    name: list(compile_blocks(blocks, SCHEMA).blocks) for name, blocks in BLOCKS.items()
}
ON_BINS = [
    name
    for name, blocks in BLOCKS.items()
    if all(block.unaligned(SCHEMA) is None for block in blocks)
]


@pytest.fixture(params=COMPILED)
def queries(request: pytest.FixtureRequest) -> QuerySet:
    return QuerySet(COMPILED[request.param])


@pytest.fixture(params=ON_BINS)
def on_bins(request: pytest.FixtureRequest) -> QuerySet:
    """Queries that models of discrete cells can answer."""
    return QuerySet(COMPILED[request.param])


def test_which_classes_discrete_models_answer() -> None:
    assert ON_BINS == ["marginals", "binary trees", "ranges"]


def test_counts_equal_a_count_by_hand(queries: QuerySet) -> None:
    counted = queries.split(queries.count(new_table(ROWS)))
    for block, counts in zip(queries.blocks, counted, strict=True):
        assert counts.dtype == np.int64
        assert counts.tolist() == by_hand(block, ROWS), block.name


def test_features_say_the_same(queries: QuerySet) -> None:
    counted = queries.split(queries.count(new_table(ROWS)))
    for block, counts in zip(queries.blocks, counted, strict=True):
        assert counts.tolist() == by_features(block, ROWS), block.name


@settings(max_examples=20)
@given(st.data())
def test_the_order_of_the_blocks_does_not_matter(data: st.DataObject) -> None:
    """Blocks share tables whose attributes may come in any order."""
    for blocks in COMPILED.values():
        chosen = data.draw(
            st.lists(st.sampled_from(blocks), min_size=1, max_size=5, unique_by=lambda g: g.name)
        )
        queries = QuerySet(chosen)
        counted = queries.split(queries.count(new_table(ROWS)))
        for block, counts in zip(chosen, counted, strict=True):
            alone = QuerySet([block]).count(new_table(ROWS))
            assert counts.tolist() == alone.tolist(), [g.name for g in chosen]


@pytest.mark.parametrize("chunk_rows", [1, 5, 37])
def test_chunks_do_not_matter(queries: QuerySet, chunk_rows: int) -> None:
    whole = queries.count(new_table(ROWS))
    parts = queries.count(new_table(ROWS, chunk_rows=chunk_rows))
    assert parts.tolist() == whole.tolist()


def test_no_rows_count_zero(queries: QuerySet) -> None:
    assert queries.count(new_table([])).tolist() == [0] * queries.size
    assert queries.count(Table(SCHEMA, [store_numbers(SCHEMA, numbers_of([]))])).sum() == 0


@settings(max_examples=25)
@given(st.lists(ROW, max_size=12))
def test_any_rows_are_counted_right(rows: list[Row]) -> None:
    for blocks in COMPILED.values():
        counted = QuerySet(blocks[-3:]).split(QuerySet(blocks[-3:]).count(new_table(rows)))
        for block, counts in zip(blocks[-3:], counted, strict=True):
            assert counts.tolist() == by_hand(block, rows)


def new_support(rows: list[Row], weights: torch.Tensor) -> Support:
    return Support(DOMAIN, codes_of(rows), weights)


def random_mixture(components: int) -> ProductMixture:
    chance = torch.Generator().manual_seed(1)
    blocks = [
        torch.rand(components, size, generator=chance, dtype=torch.float64) + 0.1
        for size in DOMAIN.sizes
    ]
    return ProductMixture(DOMAIN, torch.cat([b / b.sum(1, keepdim=True) for b in blocks], dim=1))


def test_rows_histogram_support_and_product_agree(on_bins: QuerySet) -> None:
    """The same distribution in four forms: a row is a product distribution that puts all on it."""
    counted = on_bins.count(new_table(ROWS)) / len(ROWS)
    equal = torch.full((len(ROWS),), 1 / len(ROWS), dtype=torch.float64)
    codes = [column.long() for column in codes_of(ROWS).values()]
    histogram = Histogram.uniform(DOMAIN)
    histogram.weights.zero_().index_put_(tuple(codes), equal, accumulate=True)
    one_hot = [
        torch.nn.functional.one_hot(c, size).double()
        for c, size in zip(codes, DOMAIN.sizes, strict=True)
    ]
    mixture = ProductMixture(DOMAIN, torch.cat(one_hot, dim=1))
    for answers in (
        on_bins.on_support(new_support(ROWS, equal)),
        on_bins.on_histogram(histogram),
        on_bins.on_product(mixture),
    ):
        np.testing.assert_allclose(answers.numpy(), counted, atol=1e-12)


def test_whole_weights_give_whole_sums(on_bins: QuerySet) -> None:
    """Values that enter the noise are computed in whole numbers."""
    weights = torch.arange(len(ROWS)) ** 7
    answers = on_bins.on_support(new_support(ROWS, weights))
    assert answers.dtype == torch.int64
    repeated = [[weights[i].item() for i in matching] for matching in all_matching(on_bins)]
    assert answers.tolist() == [sum(some) for some in repeated]


def all_matching(queries: QuerySet) -> list[list[int]]:
    equal = new_support(ROWS, torch.ones(len(ROWS)))
    return [
        block.matching(index, equal).tolist()
        for block in queries.blocks
        for index in range(block.size)
    ]


def test_matching_rows_are_those_that_are_counted(on_bins: QuerySet) -> None:
    one_by_one = [on_bins.count(new_table([row])) for row in ROWS]
    satisfied = np.stack(one_by_one, axis=1)
    assert all_matching(on_bins) == [np.flatnonzero(query).tolist() for query in satisfied]


def test_product_answers_equal_the_mean_of_explicit_products(on_bins: QuerySet) -> None:
    mixture = random_mixture(5)
    explicit = mixture.joint(NAMES).mean(0).reshape(DOMAIN.sizes)
    expected = on_bins.on_histogram(Histogram(DOMAIN, explicit))
    torch.testing.assert_close(on_bins.on_product(mixture), expected)


@pytest.mark.parametrize("known", [NAMES, ("sex", "age", "pay"), ("age",)])
def test_graphical_models_answer_as_all_their_cells_do(
    on_bins: QuerySet, known: tuple[str, ...]
) -> None:
    """In a chain of the attributes, most queries are across cliques."""
    domain, chance = DOMAIN.project(known), torch.Generator().manual_seed(1)
    potentials: dict[tuple[str, ...], torch.Tensor] = {
        pair: torch.randn(domain.project(pair).sizes, generator=chance, dtype=torch.float64)
        for pair in pairwise(domain.names)
    }
    logits = torch.zeros(domain.sizes, dtype=torch.float64)
    for pair, table in potentials.items():
        logits += table.reshape([s if n in pair else 1 for n, s in domain.size_of.items()])
    weights = logits.flatten().softmax(0).reshape(domain.sizes)
    answers = on_bins.on_histogram(GraphicalModel(domain, potentials))
    torch.testing.assert_close(answers, on_bins.on_histogram(Histogram(domain, weights)))


def test_product_answers_are_differentiable(on_bins: QuerySet) -> None:
    some = QuerySet(on_bins.blocks[-4:])

    def answers(values: torch.Tensor) -> torch.Tensor:
        return some.on_product(ProductMixture(DOMAIN, values))

    assert torch.autograd.gradcheck(
        answers, random_mixture(2).probabilities.requires_grad_(), fast_mode=True
    )


@pytest.mark.parametrize("known", [("age",), ("sex", "pay"), ("job", "one"), ()])
def test_attributes_that_a_model_lacks_are_uniform(
    on_bins: QuerySet, known: tuple[str, ...]
) -> None:
    lacking = [name for name in NAMES if name not in known]
    uniform = {name: 1 / DOMAIN.size_of[name] for name in lacking}
    mixture = random_mixture(1)
    columns = [
        torch.full((1, DOMAIN.size_of[name]), uniform[name], dtype=torch.float64)
        if name in lacking
        else mixture.columns([name])
        for name in NAMES
    ]
    expected = on_bins.on_product(ProductMixture(DOMAIN, torch.cat(columns, dim=1)))
    domain = DOMAIN.project(known)
    weights = mixture.joint(domain.names)[0]
    cells = np.indices(domain.sizes).reshape(len(known), len(weights))
    codes = {name: torch.from_numpy(cells[i]) for i, name in enumerate(domain.names)}
    torch.testing.assert_close(on_bins.on_support(Support(domain, codes, weights)), expected)
    histogram = Histogram(domain, weights.reshape(domain.sizes))
    torch.testing.assert_close(on_bins.on_histogram(histogram), expected)


@pytest.mark.parametrize("name", [name for name in COMPILED if name not in ON_BINS])
def test_what_bins_cannot_answer_is_refused_with_a_remedy(name: str) -> None:
    queries, support = QuerySet(COMPILED[name]), new_support(ROWS, torch.ones(len(ROWS)))
    questions: tuple[Callable[[], object], ...] = (
        lambda: queries.on_product(random_mixture(1)),
        lambda: queries.on_support(support),
        lambda: queries.on_histogram(Histogram.uniform(DOMAIN)),
        lambda: queries.blocks[0].matching(0, support),
    )
    for ask in questions:
        with pytest.raises(SpecError, match="bins"):
            ask()


def test_soft_edges_become_hard(queries: QuerySet) -> None:
    """Rows that lie on no edge are counted as they are when edges are hard enough."""
    edges = (-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    rows = [row for row in ROWS if row[3] not in edges]
    counted = queries.count(new_table(rows)) / len(rows)
    hard = queries.on_relaxed(relaxed(rows, 1e7)).numpy()
    np.testing.assert_allclose(hard, counted, atol=1e-6)
    softer, soft = (
        np.abs(queries.on_relaxed(relaxed(rows, temperature)).numpy() - counted).max()
        for temperature in (1.0, 30.0)
    )
    assert softer > soft > 1e-3


def test_relaxed_answers_are_differentiable_in_all_they_depend_on(queries: QuerySet) -> None:
    chance = torch.Generator().manual_seed(2)
    some = [
        block if block.is_whole else block.only(range(0, block.size, 9))
        for block in queries.blocks[-3:]
    ]
    model = relaxed(ROWS[:3], 5.0)
    parts = (model.categories, model.places, model.missing)
    names = [(i, name) for i, part in enumerate(parts) for name in part]
    values = [
        torch.rand(parts[i][name].shape, generator=chance, dtype=torch.float64)
        .mul(0.8)
        .add(0.1)
        .requires_grad_()
        for i, name in names
    ]

    def answers(*given: torch.Tensor) -> torch.Tensor:
        mine: tuple[dict[str, torch.Tensor], ...] = ({}, {}, {})
        for (i, name), value in zip(names, given, strict=True):
            mine[i][name] = value
        categories, places, missing = mine
        model = RelaxedRows(SCHEMA, categories, places, missing, 5.0)
        return QuerySet(some).on_relaxed(model)

    assert torch.autograd.gradcheck(answers, values, fast_mode=True)


def test_some_queries_of_a_block_are_answered_as_in_the_block(queries: QuerySet) -> None:
    for block in queries.blocks:
        if block.is_whole:
            with pytest.raises(TypeError):
                block.only([0])
            continue
        positions = [2, 0, block.size - 1]
        some = block.only(positions)
        assert some.size == 3
        labels = list(block.labels(SCHEMA))
        assert list(some.labels(SCHEMA)) == [labels[i] for i in positions]
        whole = QuerySet([block]).count(new_table(ROWS))
        assert QuerySet([some]).count(new_table(ROWS)).tolist() == whole[positions].tolist()
        assert by_features(some, ROWS) == whole[positions].tolist()
        rows = relaxed(ROWS, 3.0)
        expected = QuerySet([block]).on_relaxed(rows)[positions]
        torch.testing.assert_close(QuerySet([some]).on_relaxed(rows), expected)
        again = some.only([2])
        assert QuerySet([again]).count(new_table(ROWS)).tolist() == [whole[-1]]


def test_every_query_class_is_compared_with_its_contract() -> None:
    """In the next test, or for linked rows and for parts in tests of their own in tests/synth/queries."""
    compared = {type(block) for blocks in BLOCKS.values() for block in blocks}
    assert compared | {HierarchicalBlock, GroupSizesBlock, PartBlock, GridBlock} == COMPILERS.keys()


@pytest.mark.parametrize("name", COMPILED)
def test_the_public_contract_tells_sizes_and_sensitivities(name: str) -> None:
    for spec, block in zip(BLOCKS[name], COMPILED[name], strict=True):
        assert (spec.attributes, spec.size(SCHEMA)) == (block.attributes, block.size)
        assert spec.is_whole == block.is_whole
        for protection in PROTECTIONS:
            assert spec.sensitivity(SCHEMA, protection) == block.sensitivity(protection)
        tables = [math.prod(table.values()) for table in spec.tables(SCHEMA)]
        assert not tables or sum(tables) == block.size


def test_labels_name_every_query_once(queries: QuerySet) -> None:
    for block in queries.blocks:
        labels = list(block.labels(SCHEMA))
        assert len(labels) == block.size
        if not isinstance(block, ConjunctionQueries):  # two random ones may be the same
            assert len(set(labels)) == block.size


def test_names_are_unique(queries: QuerySet) -> None:
    assert len({block.name for block in queries.blocks}) == len(queries.blocks)
    assert Single(queries.blocks[0], 3).name == f"{queries.blocks[0].name}[3]"


def test_blocks_compiled_again_are_the_same(queries: QuerySet) -> None:
    """Counts of a block are found again for an equal block."""
    other_schema = SCHEMA.model_copy(update={"columns": SCHEMA.columns[:-1]})
    for specs in BLOCKS.values():
        again = compile_blocks(specs, SCHEMA).blocks
        assert again == compile_blocks(specs, SCHEMA).blocks
        assert [hash(block) for block in again] == [
            hash(block) for block in compile_blocks(specs, SCHEMA).blocks
        ]
    assert compile_blocks(BLOCKS["ranges"], other_schema).blocks[-1] != COMPILED["ranges"][-1]


def test_every_query_is_located_in_its_block(queries: QuerySet) -> None:
    expected = [(g, i) for g, block in enumerate(queries.blocks) for i in range(block.size)]
    assert [queries.locate(q) for q in range(queries.size)] == expected
