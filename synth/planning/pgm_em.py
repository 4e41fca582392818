"""How `pgm_em` spends: as `aim` does, among pairs; its rounds are equal unless the release says otherwise."""

from collections.abc import Sequence

from scrim.spec.mechanism import PgmEm
from scrim.spec.workload import Block
from synth.planning.aim import memory_bytes, plan
from synth.planning.candidates import smallest_pairs
from synth.planning.spending import Setting

__all__ = ["choose_measured", "memory_bytes", "plan"]


def choose_measured(spec: PgmEm, setting: Setting) -> Sequence[Block]:
    """The smallest pairs, or single columns if pairs would be lost in their noise."""
    return smallest_pairs(setting)
