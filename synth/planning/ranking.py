"""The order in which `auto` tries mechanisms: the most accurate for the setting first.

The order depends only on public facts; its constants were measured on public tables
(docs/mechanisms.md). Mechanisms that cannot work in a setting are listed too: their plans refuse, and
the next one is tried.
"""

import math
from dataclasses import dataclass, replace

from scrim.spec.budget import rho_of_units
from scrim.spec.mechanism import (
    MECHANISMS,
    Auto,
    Gaussian,
    Gem,
    GemPlus,
    GemPub,
    GenerativeNetwork,
    HierarchicalGem,
    HierarchicalMwem,
    MechanismSpec,
    PepPub,
    PrivateGsd,
    RelaxedProjection,
    Screen,
)
from scrim.spec.workload import MarginalBlock
from synth.planning import generative_network
from synth.planning.candidates import pairs_below
from synth.planning.spending import Setting

VISIBLE_WHEN_MEASURED_ONCE = 1.0
"""If an average cell of the pairs is at least this many times larger than its noise, measuring
everything once is better than rounds."""
FEW_COLUMNS = 24
"""Largest number of columns for annealed rounds, if cells are smaller; 14 and 48 columns were tested."""
SCREENED = 0.2
"""Largest standard error of a screen of public data, as a share of the error that it allows."""


@dataclass(frozen=True)
class Candidate:
    """A mechanism with its settings, and the reason to choose it."""

    mechanism: MechanismSpec
    reason: str
    drawback: str | None = None
    """Why it ranks below the mechanisms before it; None for last resorts."""
    refusal: str | None = None
    """Why it must not be chosen, if its own plan does not check this."""


_MEASURED_ONCE = (
    "a generator network fitted to what is measured once had the smallest mean error, or was within 10% "
    "of it (ADULT, ADULT reduced, ACS; docs/mechanisms.md)"
)
_FAINT_BUT_LARGEST = (
    "most cells are smaller than the noise; in this case a generator network fitted to what is measured "
    "once had the smallest maximum error (ADULT*, LOANS; docs/mechanisms.md)"
)
_SINGLE_COLUMNS = (
    "by forecast, measuring pairs of columns adds more noise than information; in this case a generator "
    "network fitted to single columns had the smallest mean error on tables with many columns (LOANS; "
    "docs/mechanisms.md)"
)
_ANNEALED = (
    "rounds that choose what to measure, and get more budget when they improve the model less, had the "
    "smallest mean error on tables with few columns (ADULT*, ADULT at epsilon 0.1; docs/mechanisms.md)"
)
_IN_ROUNDS = (
    "rounds that measure only what the model answers worst had the smallest mean error on tables with "
    "many columns (LOANS; docs/mechanisms.md)"
)

_BEHIND = (
    Candidate(
        RelaxedProjection(name="relaxed_projection"),
        "a table of logits fitted to what is measured once, if no network can work",
        drawback="its mean error was 10 to 40% larger than that of generative_network",
    ),
    Candidate(
        PrivateGsd(name="private_gsd"),
        "it keeps rows in the declared types and answers every type of query, also about numbers "
        "without bins; its mean errors were smaller than those of rap_plus_plus in every comparison "
        "(docs/results/mixed.md)",
        drawback="if numbers have bins, networks had up to 40% less mean error, on trees and on triples",
    ),
    Candidate(
        Gaussian(name="gaussian"),
        "no mechanism that releases rows can work here, and no rows are requested",
        drawback="it releases answers and no rows; their mean error was up to 100 times as large, but for "
        "a workload of few marginals their maximum error may be the smallest",
    ),
)

_LEARNT = Candidate(
    GemPub(name="gem_pub"),
    "a network is first trained on the public rows, which may lack columns and need not be close; if cells "
    "are smaller than their noise, good public rows reduced its mean error by a third (ADULT; "
    "docs/mechanisms.md)",
    drawback="weights on public rows that have every column had less mean error; if cells are larger than "
    "their noise, so did networks without public rows (ADULT, ACS)",
)


def rank(auto: Auto, setting: Setting, *, has_public_data: bool) -> list[Candidate]:
    """Rank all mechanisms for such tables, the best first."""
    if setting.schema.is_linked:
        best = _for_groups()
    elif has_public_data:
        best = _beside_public_data(_for_one_table(auto, setting), setting)
    else:
        best = _for_one_table(auto, setting)
    named = {type(each.mechanism) for each in best}
    others = [
        Candidate(
            mechanism.model_validate({"name": mechanism.catalogue_name()}),
            "the mechanisms with usually smaller errors cannot work here",
        )
        for mechanism in MECHANISMS
        if mechanism not in named
        and mechanism.two_level == setting.schema.is_linked
        and (has_public_data or not mechanism.needs_public_data)
    ]
    # Mechanisms that release rows come first: a release is expected to have rows.
    return sorted([*best, *others], key=lambda each: not each.mechanism.releases_rows)


def visibility(setting: Setting) -> float | None:
    """The ratio of an average cell to its noise if all pairs of columns were measured once.

    The pairs are those contained in the workload's marginals; None if there are none.
    """
    pairs = pairs_below(setting.asked)
    if not pairs:
        return None
    last = MarginalBlock(next(reversed(pairs)))
    l2_squared = last.sensitivity(setting.schema, setting.protection).l2_squared
    sigma = math.sqrt(max(1, l2_squared) * len(pairs) / (2 * rho_of_units(setting.units)))
    cells = sum(pairs.values()) / len(pairs)
    return setting.expected_rows / cells / sigma


def _for_groups() -> list[Candidate]:
    network = Candidate(
        HierarchicalGem(name="h_gem"),
        "for groups of individuals, its mean errors were smaller than those of h_mwem in 24 of 24 "
        "comparisons, and it takes any number of columns (docs/results/households.md)",
    )
    histogram = Candidate(
        HierarchicalMwem(name="h_mwem"),
        "for groups of individuals, if h_gem cannot work",
        drawback="its mean errors were larger than those of h_gem in 24 of 24 comparisons",
    )
    return [network, histogram]


def _beside_public_data(without: list[Candidate], setting: Setting) -> list[Candidate]:
    """Insert the mechanisms that use public rows among those that do not."""
    without = [
        replace(each, drawback=each.drawback or "it does not use the public data")
        for each in without
    ]
    seen = visibility(setting)
    if seen is not None and seen < VISIBLE_WHEN_MEASURED_ONCE:
        return [_reweighted(setting), _LEARNT, *without]
    return [_reweighted(setting), without[0], _LEARNT, *without[1:]]


def _reweighted(setting: Setting) -> Candidate:
    """Weights on public rows, after a screen of whether they can fit; refused if it is too noisy."""
    screen = Screen()
    paid = rho_of_units(setting.units) * screen.share
    error = setting.protection.max_rows_per_unit / math.sqrt(2 * paid) / setting.expected_rows
    return Candidate(
        PepPub(name="pep_pub", screen=screen),
        "weights on public rows that have every column had half the mean error of any mechanism without "
        "public rows on ACS and, at epsilon 1, on ADULT; since their error is large if kinds of rows are "
        f"missing, {screen.share:.0%} of the budget is first spent on checking whether they can fit",
        refusal=None
        if error <= SCREENED * screen.max_error
        else f"a check of whether the public rows can fit would have an error of {error:.2g} of the rows "
        f"with this budget and {setting.expected_rows:,} expected rows, too much to trust it",
    )


def _for_one_table(auto: Auto, setting: Setting) -> list[Candidate]:
    seen = visibility(setting)
    if seen is None:
        return [*_once_first(_MEASURED_ONCE), *_BEHIND]
    fact = (
        "if all pairs of columns in the workload were measured once, an average count would be "
        f"{_rounded(seen)} times its noise"
    )
    if seen >= VISIBLE_WHEN_MEASURED_ONCE:
        return [
            *_once_first(f"{fact}; with at least {VISIBLE_WHEN_MEASURED_ONCE:g}, {_MEASURED_ONCE}"),
            *_BEHIND,
        ]
    if len(_columns_of(setting)) > FEW_COLUMNS and _is_all_noise(setting):
        return [*_single_columns_first(f"{fact}; {_SINGLE_COLUMNS}"), *_BEHIND]
    if auto.goal == "max_error":
        return [*_once_first(f"{fact}; {_FAINT_BUT_LARGEST}"), *_BEHIND]
    return [
        *_rounds_first(f"{fact}; with less than {VISIBLE_WHEN_MEASURED_ONCE:g}", setting),
        *_BEHIND,
    ]


def _columns_of(setting: Setting) -> set[str]:
    return {name for block in setting.asked for name in block.attributes}


def _is_all_noise(setting: Setting) -> bool:
    """Whether a network would measure only single columns, although the workload has more."""
    network = GenerativeNetwork(name="generative_network")
    measured = generative_network.choose_measured(network, setting)
    asks_for_more = any(len(block.attributes) > 1 for block in setting.asked)
    return asks_for_more and all(len(block.attributes) == 1 for block in measured)


def _single_columns_first(reason: str) -> list[Candidate]:
    network, annealed, rounds = _once_first(reason)
    drawback = (
        "if measuring pairs adds more noise than information, its mean error was {} larger (LOANS)"
    )
    return [
        network,
        replace(rounds, drawback=drawback.format("6 to 42%")),
        replace(annealed, drawback=drawback.format("30%")),
    ]


def _once_first(reason: str) -> list[Candidate]:
    network = Candidate(GenerativeNetwork(name="generative_network"), reason)
    annealed = Candidate(
        GemPlus(name="gem_plus"),
        _ANNEALED,
        drawback="its mean error was between 5% smaller and 13% larger than that of generative_network, "
        "and its maximum error up to 2.6 times as large (ACS, ADULT)",
    )
    rounds = Candidate(
        Gem(name="gem"),
        _IN_ROUNDS,
        drawback="if cells stand out from their noise, its mean error was 10 to 30% larger than that of "
        "generative_network, and its maximum error up to 60% larger",
    )
    return [network, annealed, rounds]


def _rounds_first(fact: str, setting: Setting) -> list[Candidate]:
    columns = _columns_of(setting)
    annealed = Candidate(
        GemPlus(name="gem_plus"),
        f"{fact} and with {len(columns)} columns, {_ANNEALED}",
        drawback="with 48 columns its mean error was 14% larger than that of gem (LOANS)",
    )
    rounds = Candidate(
        Gem(name="gem"),
        f"{fact} and with {len(columns)} columns, {_IN_ROUNDS}",
        drawback="with few columns its mean error was 10 to 25% larger than that of gem_plus (ADULT*)",
    )
    network = Candidate(
        GenerativeNetwork(name="generative_network"),
        _MEASURED_ONCE,
        drawback="if most cells are smaller than their noise, its mean error was 5 to 45% larger, but its "
        "maximum error was the smallest (ADULT*, LOANS): set goal max_error if that matters more",
    )
    first = [annealed, rounds] if len(columns) <= FEW_COLUMNS else [rounds, annealed]
    return [*first, network]


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
