"""How `private_gsd` spends: everything once, or in rounds if the candidates are single queries."""

from collections.abc import Sequence

from scrim.spec.mechanism import PrivateGsd
from scrim.spec.workload import Block
from synth.planning.candidates import as_asked
from synth.planning.memory import rows_bytes
from synth.planning.one_shot import divide, one_way_apart
from synth.planning.pace import Pace, are_single, one_by_one, pace_of, single_queries
from synth.planning.rounds import plan_rounds
from synth.planning.spending import OneShot, Rounds, Setting

ONE_WAY_SHARE = 0.05
"""Share of the budget for one-way marginals if everything is measured once."""
QUERIES_PER_ROUND = 20
"""Number of single queries measured in a round."""


def choose_measured(spec: PrivateGsd, setting: Setting) -> Sequence[Block]:
    """The workload: pairs would miss higher-order structure that rows can represent (docs/defaults.md)."""
    return as_asked(setting)


def pace(spec: PrivateGsd, measured: Sequence[Block], setting: Setting) -> Pace:
    """One round per marginal, as for mixtures; more measurements, several per round, for single queries."""
    if are_single(measured):
        default = Pace(round(single_queries(setting) / QUERIES_PER_ROUND), QUERIES_PER_ROUND)
    else:
        default = one_by_one(spec, measured, setting)
    return pace_of(spec, measured, setting, default=default)


def plan(spec: PrivateGsd, measured: Sequence[Block], setting: Setting) -> OneShot | Rounds:
    """Rounds, or a single measurement of everything."""
    mode = spec.mode or ("adaptive" if are_single(measured) else "one_shot")
    if mode == "one_shot":
        return divide(setting.units, one_way_apart(measured, ONE_WAY_SHARE))
    return plan_rounds(spec, measured, setting, pace=pace(spec, measured, setting))


def memory_bytes(spec: PrivateGsd, measured: Sequence[Block], setting: Setting) -> int:
    """The rows, the counts of the measured queries, and the predicates that each row satisfies."""
    return rows_bytes(spec.rows, setting.schema, measured)
