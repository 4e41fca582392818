"""How `pep` spends: as `mwem` does."""

from collections.abc import Sequence

from scrim.spec.mechanism import Pep
from scrim.spec.workload import Block
from synth.planning.memory import histogram_bytes
from synth.planning.mwem import choose_measured, plan
from synth.planning.spending import Setting

__all__ = ["choose_measured", "memory_bytes", "plan"]


def memory_bytes(spec: Pep, measured: Sequence[Block], setting: Setting) -> int:
    """The weights, which are changed in place."""
    return histogram_bytes([*measured, *setting.asked], setting.schema, copies=1)
