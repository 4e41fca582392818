"""Models of whole groups: rows agree with answers, and columns without a model are uniform."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from scrim.spec.errors import SpecError
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload import (
    NUMBER_OF_INDIVIDUALS,
    GroupSizes,
    GroupSizesBlock,
    Hierarchical,
    HierarchicalBlock,
    Marginals,
)
from synth.domain import SIZE, domain_of_groups
from synth.measurements import Measurement
from synth.mechanisms.projection import one_way_shares
from synth.models.base import Model
from synth.models.group_types import GroupTypes
from synth.models.households import Households
from synth.models.product import ProductMixture
from synth.models.released import ReleasedModel
from synth.queries import QuerySet, compile_blocks, compile_workload
from synth.table import Table
from tests.synth.linked import two_level_schema

SCHEMA = two_level_schema({"g": 2, "h": 3}, {"a": 2, "b": 3}, 3, order="b").linked
WORKLOAD = [Hierarchical(type="hierarchical", k=k) for k in (1, 2, 3)] + [
    GroupSizes(type="group_sizes")
]
QUERIES = compile_workload(WORKLOAD, SCHEMA)


def households(schema: LinkedSchema = SCHEMA) -> Households:
    domain = domain_of_groups(schema)
    chance = torch.Generator().manual_seed(3)
    blocks = [torch.rand(20, size, generator=chance) ** 2 + 0.01 for size in domain.sizes]
    shares = torch.cat([block / block.sum(1, keepdim=True) for block in blocks], dim=1)
    return Households(schema, ProductMixture(domain, shares))


def group_types(used: tuple[str, ...] = ("g", "h", "a", "b")) -> GroupTypes:
    model = GroupTypes.uniform(SCHEMA, used)
    chance = torch.Generator().manual_seed(4)
    model.weights *= torch.rand(model.weights.shape, generator=chance, dtype=torch.float64) ** 4
    model.weights /= model.weights.sum()
    return model


MODELS: dict[str, Callable[[], Model]] = {"households": households, "group types": group_types}


@pytest.fixture(params=MODELS)
def released(request: pytest.FixtureRequest) -> ReleasedModel:
    return ReleasedModel(SCHEMA, 1000, MODELS[request.param]())


def counted(released: ReleasedModel, queries: QuerySet, groups: int) -> np.ndarray:
    """Per group, on groups that were drawn."""
    return queries.count(Table(SCHEMA, [released.sample(groups, seed=1)])) / groups


def test_groups_are_drawn_as_they_are_answered(released: ReleasedModel) -> None:
    groups = 20_000
    expected = released.model.answer(QUERIES).values
    # A group counts up to three times in a cell; no query is off by five standard deviations.
    assert np.abs(counted(released, QUERIES, groups) - expected).max() < 5 * 1.5 / groups**0.5


def test_fractions_are_of_what_is_counted(released: ReleasedModel) -> None:
    answers = released.answer(WORKLOAD)
    per_group = released.model.answer(QUERIES).values
    individuals = released.model.answer(compile_blocks([NUMBER_OF_INDIVIDUALS], SCHEMA)).values[0]
    np.testing.assert_allclose(answers.counts, per_group * 1000)
    for block, fractions in zip(QUERIES.blocks, QUERIES.split(answers.fractions), strict=True):
        if block.name.startswith("individuals"):
            assert fractions.sum() == pytest.approx(1.0, abs=1e-5)
    parts = QUERIES.split(per_group / answers.fractions)
    for block, whole in zip(QUERIES.blocks, parts, strict=True):
        expected = individuals if block.name.startswith("individuals") else 1.0
        np.testing.assert_allclose(whole, expected, rtol=1e-6)


def test_models_survive_saving_with_their_schema(released: ReleasedModel) -> None:
    loaded = ReleasedModel.from_bytes(released.to_bytes())
    assert loaded.schema == SCHEMA and isinstance(loaded.schema, LinkedSchema)
    again = loaded.answer(WORKLOAD)
    np.testing.assert_allclose(again.counts, released.answer(WORKLOAD).counts, atol=1e-3)


def test_marginals_of_rows_are_refused(released: ReleasedModel) -> None:
    with pytest.raises(SpecError, match="hierarchical"):
        released.answer([Marginals(type="marginals", k=1)])


@pytest.mark.parametrize("used", [("g", "a"), ("h",), ("b",), ()])
def test_columns_that_a_model_lacks_are_uniform(used: tuple[str, ...]) -> None:
    """The same weights, spread evenly over the kinds of groups that the model does not distinguish."""
    small = group_types(used)
    released = ReleasedModel(SCHEMA, 1000, small)
    groups = 40_000
    expected = small.answer(QUERIES).values
    assert np.abs(counted(released, QUERIES, groups) - expected).max() < 5 * 1.5 / groups**0.5


def test_a_uniform_start_has_independent_individuals_in_groups_of_any_size() -> None:
    start = GroupTypes.uniform(SCHEMA, ("g", "a", "b"))
    queries = compile_blocks(
        [
            GroupSizesBlock(()),
            NUMBER_OF_INDIVIDUALS,
            HierarchicalBlock(("a",), "individual"),
            HierarchicalBlock(("a",), "group"),
        ],
        SCHEMA,
    )
    sizes, individuals, by_a, containing_a = queries.split(start.answer(queries).values)
    np.testing.assert_allclose(sizes, 1 / 3)
    np.testing.assert_allclose(individuals, 2)
    np.testing.assert_allclose(by_a, 1)
    np.testing.assert_allclose(containing_a, 1 - (1 / 2 + 1 / 4 + 1 / 8) / 3)


def test_one_way_tables_start_every_place() -> None:
    def measured(spec: HierarchicalBlock | GroupSizesBlock, values: list[int]) -> Measurement:
        return Measurement(compile_blocks([spec], SCHEMA).blocks[0], np.array(values), 1.0)

    measurements = [
        measured(GroupSizesBlock(()), [50, 30, 20]),
        measured(HierarchicalBlock(("g",), "group"), [80, 20]),
        measured(HierarchicalBlock(("a",), "individual"), [120, 40]),
        measured(HierarchicalBlock(("b",), "group"), [90, 90, 90]),  # tells no share
    ]
    domain = domain_of_groups(SCHEMA)
    shares = one_way_shares(measurements, domain)
    by_name = dict(zip(domain.names, torch.split(shares, list(domain.sizes)), strict=True))
    assert by_name[SIZE].tolist() == pytest.approx([0.5, 0.3, 0.2])
    assert by_name["g"].tolist() == pytest.approx([0.8, 0.2])
    for name, found in by_name.items():
        if name.startswith("a"):
            assert found.tolist() == pytest.approx([0.75, 0.25])
        if name.startswith(("b", "h")):
            assert found.tolist() == pytest.approx([1 / 3] * 3)
