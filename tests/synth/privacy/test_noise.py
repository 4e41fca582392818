"""T1, T2 and T3: the noise has the distribution it is priced for.

Every check that accepts the right scale must also reject a wrong one.
"""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from scrim.spec.budget import UNITS_PER_RHO
from synth.privacy import noise
from synth.privacy.noise import FIXED_POINT

REJECT = 1e-9  # about 40 comparisons in a run: a false alarm in fewer than one run in 10^7


def units(rho: float) -> int:
    return math.floor(rho * UNITS_PER_RHO)


def discrete_gaussian(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    reach = math.ceil(40 * max(sigma, 1))
    support = np.arange(-reach, reach + 1)
    weights = np.exp(-(support**2) / (2 * sigma**2))
    return support, weights / weights.sum()


def goodness_of_fit(samples: np.ndarray, sigma: float) -> float:
    """p-value of a chi-square test with the tails pooled to at least 20 expected samples."""
    support, probability = discrete_gaussian(sigma)
    expected = probability * len(samples)
    kept = expected >= 20
    observed = np.array([np.count_nonzero(samples == x) for x in support[kept]])
    rest = len(samples) - observed.sum(), len(samples) - expected[kept].sum()
    statistic = ((observed - expected[kept]) ** 2 / expected[kept]).sum()
    statistic += (rest[0] - rest[1]) ** 2 / max(rest[1], 1e-9) if rest[1] >= 5 else 0.0
    return float(stats.chi2.sf(statistic, kept.sum()))


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [0.25, 4.0, 400.0])
def test_discrete_gaussian_conforms(variance: float) -> None:
    sampler = noise.gaussian(1, budget=units(1 / (2 * variance)))
    assert sampler.scale == pytest.approx(math.sqrt(variance), rel=1e-9)
    samples = sampler.release(np.zeros(100_000, dtype=np.int64))
    assert goodness_of_fit(samples, math.sqrt(variance)) > REJECT
    assert goodness_of_fit(samples, math.sqrt(variance) * 1.1) < REJECT
    assert goodness_of_fit(samples, math.sqrt(variance) * 0.9) < REJECT


def choice_probabilities(scores: np.ndarray, scale: float, k: int) -> dict[tuple[int, ...], float]:
    """Exact law of the k largest of score + Gumbel: drawing without replacement by softmax."""
    weights = np.exp((scores - scores.max()) / scale)
    law = {}
    for chosen in permutations(range(len(scores)), k):
        left, probability = weights.sum(), 1.0
        for i in chosen:
            probability *= weights[i] / left
            left -= weights[i]
        law[chosen] = probability
    return law


def g_test(chosen: Sequence[tuple[int, ...]], law: dict[tuple[int, ...], float]) -> float:
    """p-value of a G-test. Outcomes expected fewer than five times count as one outcome.

    Without that outcome the others would not add up to all draws, and a sampler that conforms would be
    rejected in some per cent of the runs.
    """
    draws, seen = len(chosen), Counter(chosen)
    common = [outcome for outcome, probability in law.items() if probability * draws >= 5]
    cells = [(seen[outcome], law[outcome] * draws) for outcome in common]
    rare = draws - sum(count for count, _ in cells)
    expected_rare = draws * sum(p for p in law.values() if p * draws < 5)
    if expected_rare >= 5:
        cells.append((rare, expected_rare))
    elif stats.poisson.sf(rare - 1, max(expected_rare, 1e-12)) < REJECT:
        return 0.0
    statistic = sum(2 * count * math.log(count / expected) for count, expected in cells if count)
    return float(stats.chi2.sf(max(statistic, 0.0), max(len(cells) - 1, 1)))


@pytest.mark.parametrize("rejected", [0.01, 0.1, 0.5])
def test_the_g_test_rejects_conforming_draws_as_often_as_it_says(rejected: float) -> None:
    """With many rare outcomes, drawn from the exact law itself with a fixed seed."""
    law = choice_probabilities(np.array(SCORE_VECTORS[-1][0]), 1.5, 2)
    random, outcomes = np.random.default_rng(0), list(law)
    p_values = []
    for _ in range(200):
        counts = random.multinomial(20_000, np.array(list(law.values())) / sum(law.values()))
        drawn = [outcomes[i] for i in np.repeat(np.arange(len(outcomes)), counts)]
        p_values.append(g_test(drawn, law))
    assert np.mean(np.array(p_values) < rejected) == pytest.approx(rejected, abs=0.1)


SCORE_VECTORS = [
    ([0, 0, 0, 0], 1),
    ([0, 1, 2, 3], 1),
    ([5, 5, 0, 0, 1_000_000], 1),
    ([0, 2, 2, 1], 2),
    ([*(0,) * 20, 4, 6], 2),  # few are likely: they are copied
]


@pytest.mark.statistical
@pytest.mark.parametrize(("scores", "k"), SCORE_VECTORS)
def test_selector_conforms(scores: list[int], k: int) -> None:
    scale = 1.5
    sampler = noise.noisy_top(FIXED_POINT, k, budget=units(k / (2 * scale**2)))
    # What copies add to the price is in the scale.
    assert sampler.scale == pytest.approx(scale * (FIXED_POINT + noise.COPIES), rel=1e-9)
    vector = np.array(scores, dtype=np.int64)
    chosen = [tuple(sampler.release(vector * FIXED_POINT).tolist()) for _ in range(20_000)]
    assert g_test(chosen, choice_probabilities(vector, scale, k)) > REJECT
    if len(set(scores)) > 1 and max(scores) < 100:
        assert g_test(chosen, choice_probabilities(vector, scale * 2, k)) < REJECT
        assert g_test(chosen, choice_probabilities(vector, scale / 2, k)) < REJECT


DRAWN_SCORES = [
    [0, 1, 2, 3],
    [*(0,) * 60, 2, 4, 6],  # few are likely: they are copied
    [*(0,) * 300, 9, 1_000_000],
]


@pytest.mark.statistical
@pytest.mark.parametrize("rows", DRAWN_SCORES, ids=len)
def test_independent_draws_conform(rows: list[int]) -> None:
    scale = 1.5
    sampler = noise.gumbel_draws(FIXED_POINT, scale * FIXED_POINT, 20_000)
    scores = np.array(rows, dtype=np.int64)
    chosen = [(i,) for i in sampler.release(scores * FIXED_POINT).tolist()]
    assert g_test(chosen, choice_probabilities(scores, scale, 1)) > REJECT
    if max(rows) < 100:
        assert g_test(chosen, choice_probabilities(scores, scale * 2, 1)) < REJECT
        assert g_test(chosen, choice_probabilities(scores, scale / 2, 1)) < REJECT


@given(
    st.lists(st.integers(-(2**61), 2**61) | st.integers(-100, 100), min_size=1, max_size=200),
    st.floats(1e-3, 2**61),
)
def test_copies_stand_for_their_candidates(scores: list[int], scale: float) -> None:
    """Together they weigh what their candidate weighs, up to one step of its score (section 2.4)."""
    candidates, copied = noise.copies(np.array(scores, dtype=np.int64), scale)
    assert len(copied) <= 2 * len(scores)
    for candidate, score in enumerate(scores):
        own = copied[candidates == candidate]
        doublings = len(own).bit_length() - 1
        assert len(own) == 2**doublings
        assert set(own.tolist()) == {own[0]}
        moved = doublings * noise.LN_2 * Fraction(scale) - (score - int(own[0]))
        assert 0 <= moved < 1
    # How many are proposed until one is accepted; the largest score is accepted at once.
    accepted = np.exp((copied - copied.max()) / scale).mean()
    assert accepted >= 0.25 * math.exp(-1 / scale)


def test_price_of_draws_covers_their_divergence_on_all_neighbours() -> None:
    """Scores and scale so small that the rounding of copied scores shows."""
    sampler = noise.gumbel_draws(1, 3.0, 1)
    rho, widest = sampler.price / UNITS_PER_RHO, 0.0
    for scores in ([0] * 12 + [4, 6], [0] * 12 + [9, 2], [0] * 6 + [5, 5]):
        base = drawn_probabilities(np.array(scores), sampler.scale)
        for move in product((-1, 0, 1), repeat=3):
            neighbour = np.array(scores)
            neighbour[-3:] += move
            moved = drawn_probabilities(neighbour, sampler.scale)
            widest = max(widest, np.ptp(np.log(base / moved)))
            for order in ORDERS:
                assert renyi(np.log(base), np.log(moved), order) <= order * rho + 1e-12
    assert widest <= 2 * (1 + noise.COPIES) / sampler.scale
    assert widest > 2 / sampler.scale  # the copies must be paid for


def drawn_probabilities(scores: np.ndarray, scale: float) -> np.ndarray:
    """Exact law of the candidates whose copies are drawn."""
    candidates, copied = noise.copies(scores, scale)
    weights = np.bincount(candidates, np.exp((copied - copied.max()) / scale))
    law: np.ndarray = weights / weights.sum()
    return law


def renyi(log_p: np.ndarray, log_q: np.ndarray, order: float) -> float:
    log_terms = order * log_p + (1 - order) * log_q
    top = log_terms.max()
    return float((top + np.log(np.exp(log_terms - top).sum())) / (order - 1))


ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0, 20.0])
def test_price_of_the_discrete_gaussian_covers_its_divergence(sigma: float) -> None:
    sampler = noise.gaussian(1, budget=units(1 / (2 * sigma**2)))
    rho = sampler.price / UNITS_PER_RHO
    reach = 60 * math.ceil(max(sigma, 1))
    support = np.arange(-reach, reach + 1)
    log_weights = -(support**2) / (2 * sampler.scale**2)
    log_total = np.log(np.exp(log_weights).sum())
    log_shifted = -((support - 1) ** 2) / (2 * sampler.scale**2) - log_total
    for order in ORDERS:
        divergence = renyi(log_weights - log_total, log_shifted, order)
        assert divergence <= order * rho * (1 + 1e-9)
    # Orders that are whole numbers attain the bound, so a price a little too low would show.
    assert renyi(log_weights - log_total, log_shifted, 2.0) == pytest.approx(2 * rho, rel=1e-6)


@pytest.mark.parametrize("k", [1, 2])
def test_price_of_the_selector_covers_its_divergence_on_all_neighbours(k: int) -> None:
    """Scores and scale so small that the rounding of copied scores shows."""
    sampler = noise.noisy_top(1, k, budget=units(0.3))
    rho = sampler.price / UNITS_PER_RHO
    largest, widest = 0.0, 0.0
    for scores in ([0, 0, 0], [3, 1, 0], [2, 2, 0], [*(0,) * 6, 9, 2]):
        base = peeled_probabilities(np.array(scores), sampler.scale, k)
        for move in product((-1, 0, 1), repeat=3):  # not monotone: scores may move either way
            neighbour = np.array(scores)
            neighbour[-3:] += move
            moved = peeled_probabilities(neighbour, sampler.scale, k)
            p, q = np.log(list(base.values())), np.log(list(moved.values()))
            widest = max(widest, np.ptp(p - q))
            for order in ORDERS:
                largest = max(largest, renyi(p, q, order) / order)
                assert renyi(p, q, order) <= order * rho + 1e-12
    assert widest <= 2 * k * (1 + noise.COPIES) / sampler.scale
    assert largest > 0.05 * rho  # most of this price is for what copies may add to so small a score


def test_the_price_of_the_selector_is_that_of_scores_that_move_further() -> None:
    """rho = k (Du + COPIES)^2 / (2 b^2), no less and hardly more."""
    for k in (1, 3):
        sampler = noise.noisy_top(FIXED_POINT, k, budget=units(0.3))
        moved = FIXED_POINT + noise.COPIES
        exact = UNITS_PER_RHO * k * moved**2 / (2 * Fraction(sampler.scale) ** 2)
        assert exact <= sampler.price <= units(0.3)
        assert exact >= units(0.3) * (1 - 1e-9)


def peeled_probabilities(scores: np.ndarray, scale: float, k: int) -> dict[tuple[int, ...], float]:
    """Exact law of k candidates drawn one after another, each by way of copies of those left."""
    if k == 0:
        return {(): 1.0}
    law = {}
    for first, probability in enumerate(drawn_probabilities(scores, scale)):
        left = np.delete(np.arange(len(scores)), first)
        for others, conditional in peeled_probabilities(scores[left], scale, k - 1).items():
            law[(first, *left[list(others)].tolist())] = probability * conditional
    return law


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.3, 7.0])
@pytest.mark.parametrize("l2_squared", [1, 2, 18, 10**12])
def test_calibrated_noise_fits_its_budget_tightly(rho: float, l2_squared: int) -> None:
    sampler = noise.gaussian(l2_squared, budget=units(rho))
    assert sampler.price <= units(rho)
    assert sampler.price >= units(rho) - 1 - units(rho) // 10**9
    exact = l2_squared / (2 * sampler.scale**2) * UNITS_PER_RHO
    assert sampler.price >= exact * (1 - 1e-12)


def test_prices_are_rounded_up() -> None:
    moved = FIXED_POINT + noise.COPIES
    for scale in (1e5 * FIXED_POINT, 1e7 * FIXED_POINT):  # 0.005 units are one unit, not none
        price = noise.gumbel_draws(FIXED_POINT, scale, 1).price
        exact = math.ceil(UNITS_PER_RHO * moved**2 / (2 * Fraction(scale) ** 2))
        assert price in (exact, exact + 1)
        assert noise.gumbel_draws(FIXED_POINT, scale, 5).price == 5 * price


def test_draws_among_scores_that_nobody_moves_are_free() -> None:
    assert noise.gumbel_draws(0, 1.0, 7).price == 0


def test_public_counts_are_free_and_exact() -> None:
    sampler = noise.gaussian(0, budget=0)
    assert (sampler.price, sampler.scale) == (0, 0.0)
    assert sampler.release(np.array([3, 4])).tolist() == [3, 4]


@pytest.mark.parametrize("budget", [0, -1])
def test_an_operation_needs_a_budget(budget: int) -> None:
    with pytest.raises(ValueError, match="positive budget"):
        noise.gaussian(1, budget=budget)
