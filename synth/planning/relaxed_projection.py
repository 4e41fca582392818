"""How `relaxed_projection` spends: marginals of the best orders are measured once."""

from collections.abc import Sequence

from scrim.spec.mechanism import OneShotMixtureSpec
from scrim.spec.workload import Block
from synth.planning.candidates import by_forecast_error
from synth.planning.mixture import fitted_once_bytes
from synth.planning.one_shot import divide, one_way_apart
from synth.planning.spending import OneShot, Setting


def choose_measured(spec: OneShotMixtureSpec, setting: Setting) -> Sequence[Block]:
    """Marginals of the orders with the least forecast error; all else that is asked, as it is."""
    return by_forecast_error(setting)


def plan(spec: OneShotMixtureSpec, measured: Sequence[Block], setting: Setting) -> OneShot:
    """One-way marginals apart from the others."""
    return divide(setting.units, one_way_apart(measured, spec.one_way_share))


def memory_bytes(spec: OneShotMixtureSpec, measured: Sequence[Block], setting: Setting) -> int:
    """What is fitted, and what it is compared with."""
    return fitted_once_bytes(spec, measured, setting)
