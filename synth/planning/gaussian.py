"""How `gaussian` spends: it measures the whole workload once, with equal shares of the budget."""

from collections.abc import Sequence

from scrim.spec.mechanism import Gaussian
from scrim.spec.workload import Block
from synth.planning.one_shot import divide, equal_weights
from synth.planning.spending import OneShot, Setting


def choose_measured(spec: Gaussian, setting: Setting) -> Sequence[Block]:
    """The workload."""
    return setting.asked


def plan(spec: Gaussian, measured: Sequence[Block], setting: Setting) -> OneShot:
    """The same share for each block."""
    return divide(setting.units, equal_weights(measured))


def memory_bytes(spec: Gaussian, measured: Sequence[Block], setting: Setting) -> None:
    """Unknown: it depends on how the measurements overlap."""
    return
