"""Answers of a mixture by matrix products: the same as cell by cell, however they are batched."""

import math
from collections.abc import Sequence
from itertools import combinations

import pytest
import torch

from synth.domain import Domain
from synth.models.product import ProductMixture
from synth.queries import Marginal, marginal_products
from synth.queries.marginal_products import MarginalProducts

DOMAIN = Domain(("a", "b", "c", "d", "e"), (3, 2, 5, 1, 4))
COMPONENTS = 13
ALL = [names for order in (1, 2, 3, 4) for names in combinations(DOMAIN.names, order)]
ALL_PAIRS = [names for names in ALL if len(names) == 2]
# Few of the products P^T P, so that they are computed one by one.
WIDE = Domain(tuple(f"x{i}" for i in range(20)), (4,) * 20)
FEW_PAIRS = [(f"x{i}", f"x{i + 1}") for i in range(19)]


def marginals(blocks: Sequence[tuple[str, ...]], domain: Domain = DOMAIN) -> list[Marginal]:
    return [Marginal(names, tuple(domain.size_of[name] for name in names)) for names in blocks]


def new_mixture(domain: Domain = DOMAIN) -> ProductMixture:
    chance = torch.Generator().manual_seed(3)
    blocks = [torch.rand(COMPONENTS, size, generator=chance) for size in domain.sizes]
    shares = torch.cat([block / block.sum(1, keepdim=True) for block in blocks], dim=1)
    return ProductMixture(domain, shares.double().requires_grad_())


def one_by_one(blocks: Sequence[Marginal], mixture: ProductMixture) -> torch.Tensor:
    return torch.cat([mixture.joint(block.attributes).mean(0) for block in blocks])


def weighted_gradient(answers: torch.Tensor, mixture: ProductMixture) -> torch.Tensor:
    weights = torch.linspace(-1, 1, len(answers), dtype=answers.dtype).square()
    return torch.autograd.grad((answers * weights).sum(), mixture.probabilities)[0]


def check(blocks: Sequence[Marginal], domain: Domain = DOMAIN) -> None:
    mixture = new_mixture(domain)
    expected = one_by_one(blocks, mixture)
    answers = MarginalProducts(blocks, domain).answers(mixture)
    torch.testing.assert_close(answers, expected)
    torch.testing.assert_close(
        weighted_gradient(answers, mixture), weighted_gradient(expected, mixture)
    )
    with torch.no_grad():
        torch.testing.assert_close(
            MarginalProducts(blocks, domain).answers(mixture), expected.detach()
        )


@pytest.mark.parametrize(
    "blocks",
    [
        ALL,
        ALL[::-1],
        ALL_PAIRS,
        [("c", "a"), ("e", "d", "b"), ("b",), ("a", "e", "c")],
        [("a", "b", "c", "d", "e")],
        [("d",)],
    ],
    ids=["all", "backwards", "pairs", "other orders of attributes", "everything", "a constant"],
)
def test_answers_are_the_explicit_products(blocks: list[tuple[str, ...]]) -> None:
    check(marginals(blocks))


def test_pairs_are_one_product_only_where_most_of_it_is_asked() -> None:
    assert marginal_products._all_pairs(ALL_PAIRS, DOMAIN) is not None
    assert marginal_products._all_pairs(FEW_PAIRS, WIDE) is None
    check(marginals(FEW_PAIRS, WIDE), WIDE)


@pytest.mark.parametrize("blocks", [ALL, ALL_PAIRS], ids=["all", "pairs"])
@pytest.mark.parametrize("entries", [1, 40, 200])
@pytest.mark.parametrize("kept", [0, 10**6], ids=["computed again", "kept"])
def test_batches_and_recomputation_change_nothing(
    monkeypatch: pytest.MonkeyPatch, blocks: list[tuple[str, ...]], entries: int, kept: int
) -> None:
    monkeypatch.setattr(marginal_products, "MAX_ENTRIES", entries)
    monkeypatch.setattr(marginal_products, "KEPT_TABLES", kept)
    check(marginals(blocks))


def test_no_table_is_larger_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0
    joint = ProductMixture.joint

    def watched(mixture: ProductMixture, names: Sequence[str]) -> torch.Tensor:
        nonlocal largest
        table = joint(mixture, names)
        largest = max(largest, table.numel())
        return table

    blocks = marginals([("a", "b", "c", "e")])
    rows = math.prod(DOMAIN.size_of[name] for name in ("a", "b", "e"))
    monkeypatch.setattr(marginal_products, "MAX_ENTRIES", 3 * rows)
    monkeypatch.setattr(ProductMixture, "joint", watched)
    MarginalProducts(blocks, DOMAIN).answers(new_mixture())
    assert largest == 3 * rows
