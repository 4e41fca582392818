"""How `gem_pub` spends: as `gem` does. Pretraining on the public rows costs memory but no budget."""

import math
from collections.abc import Sequence

from scrim.spec.mechanism import GemPub
from scrim.spec.workload import Block
from synth.planning import gem
from synth.planning.gem import choose_measured, plan
from synth.planning.memory import (
    BLOCKS_PER_STEP,
    BYTES_PER_QUERY,
    DOUBLE,
    SINGLE,
    joint_table_bytes,
    queries_of,
)
from synth.planning.spending import Setting

__all__ = ["choose_measured", "memory_bytes", "plan"]


def memory_bytes(spec: GemPub, measured: Sequence[Block], setting: Setting) -> int:
    """The public answers to the whole workload, and one step on a batch of it; without the rows."""
    asked, schema = setting.asked, setting.schema
    batch = asked[:: math.ceil(len(asked) / BLOCKS_PER_STEP)]
    answers = (2 * SINGLE + DOUBLE) * queries_of(asked, schema)  # value, noise and place
    step = joint_table_bytes(spec.components, batch, schema)
    step += BYTES_PER_QUERY * queries_of(batch, schema)
    return gem.memory_bytes(spec, measured, setting) + answers + step
