"""How `relaxed_projection` spends: it measures what is asked once."""

from collections.abc import Sequence

from scrim.spec.mechanism import OneShotMixtureSpec
from scrim.spec.workload import Block
from synth.planning.candidates import as_asked
from synth.planning.mixture import fitted_once_bytes
from synth.planning.one_shot import divide, one_way_apart
from synth.planning.spending import OneShot, Setting


def choose_measured(spec: OneShotMixtureSpec, setting: Setting) -> Sequence[Block]:
    """What is asked, as far as a fit can take it."""
    return as_asked(setting)


def plan(spec: OneShotMixtureSpec, measured: Sequence[Block], setting: Setting) -> OneShot:
    """One share for the one-way marginals, another for the rest."""
    return divide(setting.units, one_way_apart(measured, spec.one_way_share))


def memory_bytes(spec: OneShotMixtureSpec, measured: Sequence[Block], setting: Setting) -> int:
    """The generator, and the measurements."""
    return fitted_once_bytes(spec, measured, setting)
