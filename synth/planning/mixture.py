"""Candidates and memory of mechanisms whose model is a mixture of product distributions."""

from collections.abc import Sequence

from scrim.spec.mechanism import MixtureSpec, NetworkSpec, OneShotMixtureSpec
from scrim.spec.workload import Block
from synth.planning.memory import (
    BYTES_PER_QUERY,
    DOUBLE,
    KEPT_PLANS,
    OUTPUT_COPIES,
    SINGLE,
    TABLE_COPIES,
    joint_table_bytes,
    mixture_draw_bytes,
    network_bytes,
    queries_of,
)
from synth.planning.pace import Pace
from synth.planning.spending import Setting

MEMBERS, FEW_MEMBERS = 4, 2
"""Mixtures of an ensemble: four of 250 products had 4% less mean error than one of 1,000 (pairs of ADULT at
epsilon 1)."""
VERY_FEW_COUNTS, FEW_COUNTS, MANY_COUNTS = 2_000, 5_000, 100_000
"""Below the first number of counts one mixture errs as little as two, below the second two as little as
four (docs/defaults.md): a small table is then released in half of the time. Beyond the third, two are
fitted, to release a large table in a bearable time."""


def members_of(spec: OneShotMixtureSpec, counts: int) -> int:
    """The number of mixtures that are fitted to this many counts."""
    if spec.members is not None:
        return spec.members
    if counts < VERY_FEW_COUNTS:
        return 1
    return MEMBERS if FEW_COUNTS <= counts <= MANY_COUNTS else FEW_MEMBERS


def fitted_once_bytes(spec: MixtureSpec, measured: Sequence[Block], setting: Setting) -> int:
    """The generator, the tables of its answers, the measurements, and what drawing rows needs."""
    return (
        generator_bytes(spec, sum(setting.schema.sizes.values()))
        + mixture_draw_bytes(spec.components, setting.schema)
        + joint_table_bytes(spec.components, measured, setting.schema)
        + BYTES_PER_QUERY * queries_of(measured, setting.schema)
    )


def fitted_in_rounds_bytes(
    spec: MixtureSpec, measured: Sequence[Block], setting: Setting, *, pace: Pace
) -> int:
    """The same for rounds: each measures other marginals, with their own products and cached plans."""
    share = min(1.0, pace.rounds * pace.per_round / len(measured))
    plan = DOUBLE * share * queries_of(measured, setting.schema)
    tables = [table for block in measured for table in block.tables(setting.schema)]
    widest = sum(max(table.values()) for table in tables)
    factors = 2 * SINGLE * spec.components * share * widest
    extra = round(min(pace.rounds, KEPT_PLANS) * plan + factors)
    return fitted_once_bytes(spec, measured, setting) + extra


def generator_bytes(spec: MixtureSpec, codes: int) -> int:
    """A table with one number per component and code; or a network and its output of that size."""
    if not isinstance(spec, NetworkSpec):
        return SINGLE * TABLE_COPIES * spec.components * codes
    network = network_bytes(spec.components, latent=spec.latent, hidden=spec.hidden, outputs=codes)
    return network + SINGLE * OUTPUT_COPIES * spec.components * codes
