"""Rows from a junction tree: the requested number, with a small sampling error."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.domain import Domain
from synth.models.graphical import GraphicalModel
from synth.planning.triangulation import Attributes
from tests.synth.graphical.models import models

CHAIN = Domain(("a", "b", "c", "d"), (4, 5, 6, 3))


def counts_of(codes: dict[str, np.ndarray], domain: Domain, names: Attributes) -> np.ndarray:
    counts = np.zeros([domain.size_of[name] for name in names])
    np.add.at(counts, tuple(codes[name] for name in names), 1)
    return counts


@settings(max_examples=30)
@given(models(), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_any_number_of_rows_inside_the_domain(
    model: tuple[Domain, dict[Attributes, torch.Tensor]], rows: int, seed: int
) -> None:
    domain, potentials = model
    codes = GraphicalModel(domain, potentials).sample(rows, np.random.default_rng(seed))
    assert codes.keys() == set(domain.names)
    for name, column in codes.items():
        assert column.shape == (rows,)
        assert ((column >= 0) & (column < domain.size_of[name])).all()


def chain_model() -> GraphicalModel:
    chance = torch.Generator().manual_seed(2)
    pairs = [("a", "b"), ("b", "c"), ("c", "d")]
    return GraphicalModel(
        CHAIN,
        {
            pair: torch.randn(CHAIN.project(pair).sizes, generator=chance, dtype=torch.float64)
            for pair in pairs
        },
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_tables_of_cliques_are_hardly_missed(seed: int) -> None:
    model, rows = chain_model(), 10_000
    codes = model.sample(rows, np.random.default_rng(seed))
    tree = model.beliefs.tree
    for clique, table in zip(tree.cliques, model.beliefs.tables, strict=True):
        missed = np.abs(counts_of(codes, CHAIN, clique) - rows * table.numpy())
        # Rows drawn one by one would miss a cell by about 17, and the worst of them by about 50.
        assert missed.max() < 4


def test_what_no_clique_holds_is_independent_given_what_is_between() -> None:
    model, rows = chain_model(), 200_000
    codes = model.sample(rows, np.random.default_rng(1))
    for names in (("a", "c"), ("a", "d"), ("b", "d"), ("a", "b", "c", "d")):
        (table,) = model.marginals([names])
        expected = rows * table.numpy()
        missed = np.abs(counts_of(codes, CHAIN, names) - expected)
        assert (missed < 5 * np.sqrt(expected) + 5).all()


def test_rows_come_in_no_order() -> None:
    codes = chain_model().sample(10_000, np.random.default_rng(1))
    for column in codes.values():
        first, second = column[:5000].mean(), column[5000:].mean()
        assert abs(first - second) < 0.2
