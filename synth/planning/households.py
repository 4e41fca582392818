"""The measurements before the first round, shared by mechanisms for groups of individuals."""

from collections.abc import Sequence

from scrim.spec.mechanism import AdaptiveSpec
from scrim.spec.workload import NUMBER_OF_INDIVIDUALS, Block, GroupSizesBlock
from synth.planning.columns import column_alone
from synth.planning.pace import columns_of
from synth.planning.spending import Setting


def open_levels(spec: AdaptiveSpec, measured: Sequence[Block], setting: Setting) -> Sequence[Block]:
    """The number of individuals, the sizes, and every candidate column at its own level."""
    if not spec.opening_share:
        return []
    return [
        NUMBER_OF_INDIVIDUALS,
        GroupSizesBlock(()),
        *(column_alone(name, setting.schema) for name in columns_of(measured)),
    ]
