"""How `relaxed_projection` spends: it measures what is asked once."""

from collections.abc import Sequence
from itertools import combinations

from scrim.spec.mechanism import OneShotMixtureSpec
from scrim.spec.workload import Block
from synth.planning.candidates import as_asked, left_out
from synth.planning.mixture import fitted_once_bytes
from synth.planning.one_shot import divide, one_way_apart
from synth.planning.spending import OneShot, Setting

LEAST_SHARE, LARGEST_SHARE = 0.05, 0.5
"""Share of the budget for single columns if every asked pair is measured, and if none is."""


def choose_measured(spec: OneShotMixtureSpec, setting: Setting) -> Sequence[Block]:
    """What is asked, as far as a fit can take it."""
    return as_asked(setting)


def plan(spec: OneShotMixtureSpec, measured: Sequence[Block], setting: Setting) -> OneShot:
    """One share for the one-way marginals, another for the rest."""
    share = one_way_share(measured, setting) if spec.one_way_share is None else spec.one_way_share
    return divide(setting.units, one_way_apart(measured, share))


def one_way_share(measured: Sequence[Block], setting: Setting) -> float:
    """The share of single columns: the more of the asked cells lack a measured pair, the larger."""
    marginals = setting.asked.marginals
    missing = set(left_out(marginals, measured))
    sizes = {block: block.size(setting.schema) for block in marginals}
    lacking = sum(
        size
        for block, size in sizes.items()
        if missing and not missing.isdisjoint(combinations(block.attributes, 2))
    )
    part = lacking / sum(sizes.values()) if sizes else 0.0
    return LEAST_SHARE + (LARGEST_SHARE - LEAST_SHARE) * part


def memory_bytes(spec: OneShotMixtureSpec, measured: Sequence[Block], setting: Setting) -> int:
    """The generator, and the measurements."""
    return fitted_once_bytes(spec, measured, setting)
