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
    GenerativeNetworkPub,
    HierarchicalGem,
    HierarchicalMwem,
    MechanismSpec,
    OneShotMixtureSpec,
    PepPub,
    PrivateGsd,
    RelaxedProjection,
    Screen,
)
from synth.planning.candidates import is_faint, visibility
from synth.planning.spending import Setting

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
    "networks fitted to what is asked, measured once, had the smallest mean error at epsilon 1 (ADULT, ADULT "
    "reduced, LOANS, ACS, one run each; docs/mechanisms.md)"
)
_SINGLE_COLUMNS = (
    "counts of pairs would be lost in their noise, so only single columns are measured, and relations "
    "between columns are not kept: ask about fewer columns, declare wider bins, or use a larger budget"
)

_BEHIND = (
    Candidate(
        RelaxedProjection(name="relaxed_projection"),
        "tables of logits fitted to what is measured once, if no network can work",
        drawback="its mean error was 5 to 10% larger than that of generative_network (ADULT)",
    ),
    Candidate(
        GemPlus(name="gem_plus"),
        "rounds that choose what to measure, and get more budget when they improve the model less",
        drawback="its mean error was 10 to 40% larger than that of generative_network (ADULT, LOANS)",
    ),
    Candidate(
        Gem(name="gem"),
        "rounds that measure only what the model answers worst",
        drawback="its mean error was 5 to 60% larger than that of generative_network (ADULT, LOANS)",
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

_BLENDED = Candidate(
    GenerativeNetworkPub(name="generative_network_pub"),
    "a network and reweighted public rows are fitted to the same measurements, and blended in the proportion "
    "that the measurements support; good public rows lower the error, and bad ones get no share "
    "(docs/mechanisms.md)",
)
_LEARNT = Candidate(
    GemPub(name="gem_pub"),
    "a network is first trained on the public rows, which may lack columns",
    drawback="nothing measures whether its training on the public rows helps; networks without public rows "
    "had less mean error at epsilon 1 (ADULT, ACS)",
)


def rank(auto: Auto, setting: Setting, *, has_public_data: bool) -> list[Candidate]:
    """Rank all mechanisms for such tables, the best first."""
    if setting.schema.is_linked:
        best = _for_groups()
    elif has_public_data:
        best = _beside_public_data(_for_one_table(setting), setting)
    else:
        best = _for_one_table(setting)
    if auto.seconds is not None:
        best = [each for slow in best for each in (slow, *_faster(slow))]
    if auto.goal == "max_error":
        best = [_with_smallest_largest_error(each) for each in best]
    named = {type(each.mechanism) for each in best}
    others = [
        Candidate(
            mechanism.model_validate({"name": mechanism.catalogue_name()}),
            "the mechanisms with usually smaller errors cannot work here",
        )
        for mechanism in MECHANISMS
        if mechanism not in named
        and mechanism.works_on(linked=setting.schema.is_linked)
        and (has_public_data or not mechanism.needs_public_data)
    ]
    # Mechanisms that release rows come first: a release is expected to have rows.
    return sorted([*best, *others], key=lambda each: not each.mechanism.releases_rows)


def _faster(candidate: Candidate) -> list[Candidate]:
    """One mixture instead of an ensemble, which takes a half to a quarter of the time."""
    mechanism = candidate.mechanism
    if not isinstance(mechanism, OneShotMixtureSpec):
        return []
    return [
        Candidate(
            mechanism.model_copy(update={"members": 1}),
            f"one fit of {mechanism.catalogue_name()} instead of several, to save time",
            drawback="several fits, released together, had about 5% less mean error (ADULT)",
        )
    ]


def _with_smallest_largest_error(candidate: Candidate) -> Candidate:
    """Set the objective of noisy answers to their largest standard error."""
    if not isinstance(candidate.mechanism, Gaussian):
        return candidate
    return replace(candidate, mechanism=Gaussian(name="gaussian", objective="max"))


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
    """Insert the mechanisms that use public rows among those that do not.

    Public rows may be of any quality, so only the blend, which measures it, comes before them.
    """
    without = [
        replace(each, drawback=each.drawback or "it does not use the public data")
        for each in without
    ]
    return [_BLENDED, without[0], _reweighted(setting), _LEARNT, *without[1:]]


def _reweighted(setting: Setting) -> Candidate:
    """Weights on public rows, after a screen of whether they can fit; refused if it is too noisy."""
    screen = Screen()
    paid = rho_of_units(setting.units) * screen.share
    error = setting.protection.max_rows_per_unit / math.sqrt(2 * paid) / setting.expected_rows
    return Candidate(
        PepPub(name="pep_pub", screen=screen),
        "weights on public rows that have every column; since their error is large if kinds of rows are "
        f"missing, {screen.share:.0%} of the budget is first spent on checking whether they can fit",
        drawback="if the public rows are a little off, its error stays: with Pennsylvania's for New York it "
        "was a fifth larger than that of a network without public rows (ACS, epsilon 1)",
        refusal=None
        if error <= SCREENED * screen.max_error
        else f"a check of whether the public rows can fit would have an error of {error:.2g} of the rows "
        f"with this budget and {setting.expected_rows:,} expected rows, too much to trust it",
    )


def _for_one_table(setting: Setting) -> list[Candidate]:
    return [Candidate(GenerativeNetwork(name="generative_network"), _reason(setting)), *_BEHIND]


def _reason(setting: Setting) -> str:
    """What speaks for networks, and how far counts stand out from their noise."""
    seen = visibility(setting)
    if seen is None:
        return _MEASURED_ONCE
    why = _SINGLE_COLUMNS if is_faint(setting) else _MEASURED_ONCE
    return (
        "if the pairs of columns in the workload were measured once, an average count would be "
        f"{_rounded(seen)} times its noise; {why}"
    )


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
