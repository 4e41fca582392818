"""What the planning file of a mechanism offers, and where to find it: under the mechanism's name."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from scrim.spec.mechanism import MechanismSpec
from scrim.spec.workload import Block
from synth.planning.spending import Plan, Setting


class Planner(Protocol):
    """The functions of a file such as synth/planning/aim.py. Each takes its own mechanism's parameters."""

    def choose_measured(self, spec: Any, setting: Setting) -> Sequence[Block]:
        """What to measure for what is asked, where the release does not say."""

    def plan(self, spec: Any, measured: Sequence[Block], setting: Setting) -> Plan:
        """Divide the budget over the operations on those blocks, rounding down; or refuse."""

    def memory_bytes(self, spec: Any, measured: Sequence[Block], setting: Setting) -> int | None:
        """About how much memory the fit needs at its peak, beside the program; None if unknown."""


def planner_of(mechanism: MechanismSpec) -> Planner:
    """The planning file of a mechanism."""
    return cast(Planner, import_module(f"synth.planning.{mechanism.catalogue_name()}"))
