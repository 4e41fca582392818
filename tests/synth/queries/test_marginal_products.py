"""Answers of a mixture by matrix products: the same as cell by cell, however they are batched."""

import math
from collections.abc import Sequence
from itertools import combinations, pairwise

import pytest
import torch

from synth.domain import Domain
from synth.models.product import ProductMixture
from synth.queries import Marginal, marginal_products, product_sums
from synth.queries.marginal_products import MarginalProducts
from synth.queries.product_sums import JointSums

DOMAIN = Domain(("a", "b", "c", "d", "e"), (3, 2, 5, 1, 4))
COMPONENTS = 13
ALL = [names for order in (1, 2, 3, 4) for names in combinations(DOMAIN.names, order)]
ALL_PAIRS = [names for names in ALL if len(names) == 2]
# Few of the pairs of a wide table, so that they are computed one by one.
WIDE = Domain(tuple(f"x{i:02}" for i in range(20)), (40,) * 20)
FEW_PAIRS = list(pairwise(WIDE.names))


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


def count_parts(blocks: Sequence[tuple[str, ...]], domain: Domain) -> int:
    return len(MarginalProducts(marginals(blocks, domain), domain)._parts)


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


def test_pairs_are_one_product_only_where_that_is_less_work() -> None:
    assert count_parts(ALL_PAIRS, DOMAIN) == 1
    assert count_parts(FEW_PAIRS, WIDE) == 19
    check(marginals(FEW_PAIRS, WIDE), WIDE)


def test_some_pairs_and_columns_that_are_in_none() -> None:
    names = [("c",), ("e", "a"), ("a", "c"), ("c", "e"), ("b",), ("e",), ("d", "b", "c")]
    assert count_parts(names, DOMAIN) == 3
    check(marginals(names))


@pytest.mark.parametrize("panel", [1, 2, 4, 100])
def test_panels_change_nothing(monkeypatch: pytest.MonkeyPatch, panel: int) -> None:
    monkeypatch.setattr(product_sums, "PANEL", panel)
    check(marginals(ALL))
    check(marginals(ALL_PAIRS))


def test_a_block_that_is_asked_twice_counts_twice() -> None:
    check(marginals([("a", "b"), ("b", "a"), ("c",), ("a", "b"), ("c",)]))


@pytest.mark.parametrize("blocks", [ALL, ALL_PAIRS], ids=["all", "pairs"])
@pytest.mark.parametrize("entries", [1, 40, 200])
def test_batches_change_nothing(
    monkeypatch: pytest.MonkeyPatch, blocks: list[tuple[str, ...]], entries: int
) -> None:
    monkeypatch.setattr(marginal_products, "MAX_ENTRIES", entries)
    check(marginals(blocks))


def test_a_transposed_mixture_gives_the_same() -> None:
    mixture = new_mixture()
    turned = mixture.probabilities.detach().T.contiguous().T.requires_grad_()
    plan = MarginalProducts(marginals(ALL), DOMAIN)
    expected, found = plan.answers(mixture), plan.answers(ProductMixture(DOMAIN, turned))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        weighted_gradient(found, ProductMixture(DOMAIN, turned)),
        weighted_gradient(expected, mixture),
    )


def test_no_table_is_larger_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0
    tables = JointSums._tables

    def watched(sums: JointSums, codes: torch.Tensor) -> list[torch.Tensor]:
        nonlocal largest
        found = tables(sums, codes)
        largest = max(largest, *(table.numel() for table in found))
        return found

    blocks = marginals([("a", "b", "c", "e")])
    rows = math.prod(DOMAIN.size_of[name] for name in ("a", "b", "e"))
    monkeypatch.setattr(marginal_products, "MAX_ENTRIES", 3 * rows)
    monkeypatch.setattr(JointSums, "_tables", watched)
    mixture = new_mixture()
    weighted_gradient(MarginalProducts(blocks, DOMAIN).answers(mixture), mixture)
    assert largest == 3 * rows
