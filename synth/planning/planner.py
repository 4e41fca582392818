"""The interface of a mechanism's planning module, and its lookup by the mechanism's name."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from scrim.spec.mechanism import MechanismSpec
from scrim.spec.workload import Block
from synth.planning.spending import Plan, Setting


class Planner(Protocol):
    """The functions of a module such as synth/planning/aim.py; `spec` has that mechanism's parameters."""

    def choose_measured(self, spec: Any, setting: Setting) -> Sequence[Block]:
        """Choose what to measure for the workload if the release does not name it."""

    def plan(self, spec: Any, measured: Sequence[Block], setting: Setting) -> Plan:
        """Divide the budget over the operations on those blocks, rounding down; or refuse."""

    def memory_bytes(self, spec: Any, measured: Sequence[Block], setting: Setting) -> int | None:
        """Estimate the fit's peak memory, without the program itself; None if unknown."""


def planner_of(mechanism: MechanismSpec) -> Planner:
    """Return the planning module of a mechanism."""
    return cast(Planner, import_module(f"synth.planning.{mechanism.catalogue_name()}"))
