"""Mechanisms for groups of individuals (Liu, Wu 2022)."""

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.budget import rho_of_units
from scrim.spec.mechanism.adaptive import AdaptiveSpec, moved_of
from scrim.spec.mechanism.base import Setting
from scrim.spec.mechanism.histogram import MultiplicativeWeightsSpec
from scrim.spec.mechanism.product import GenerativeSpec, Steps
from scrim.spec.memory import (
    BYTES_PER_QUERY,
    CACHED_BYTES,
    DOUBLE,
    KEPT_PLANS,
    KEPT_TABLES,
    MAX_ENTRIES,
    RECOMPUTED_TABLES,
    SINGLE,
    linked_entries,
    queries_of,
)
from scrim.spec.schema import Schema
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload import (
    NUMBER_OF_INDIVIDUALS,
    Group,
    GroupSizesGroup,
    HierarchicalGroup,
)
from scrim.spec.workload.hierarchical import as_linked

PAPER = "Liu, Wu (2022), Towards Differentially Private Query Release for Hierarchical Data"
MEASUREMENTS_PER_ROUND = 3
"""How many of the measurements that are worth their noise go into a round (docs/defaults.md)."""
FEW_ROUNDS = 6
"""How many rounds there are where households move much, and cells do not stand out from the noise."""
TIMES_AS_MANY = 2
"""How many times as many pairs are measured there as other mixtures would measure."""
VISIBLE = 5.0
"""How many times its noise an average cell must hold for its table to be worth a measurement."""


class TwoLevelSpec(AdaptiveSpec):
    """What mechanisms for linked tables share."""

    two_level: ClassVar[bool] = True
    query_types: ClassVar[tuple[str, ...]] = ("hierarchical", "group_sizes")

    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Share of the budget for measuring, before the first round, the number of individuals, the sizes
    of groups, and every column alone at its own level."""

    def opened(self, measured: Sequence[Group], schema: Schema) -> Sequence[Group]:
        """Individuals, sizes, and every column that some candidate is about."""
        if not self.opening_share:
            return []
        linked = as_linked(schema)
        of_groups = set(linked.group_attributes)
        names = dict.fromkeys(name for group in measured for name in group.attributes)
        return [
            NUMBER_OF_INDIVIDUALS,
            GroupSizesGroup(()),
            *(
                HierarchicalGroup((name,), "group" if name in of_groups else "individual")
                for name in names
            ),
        ]


class HierarchicalMwem(TwoLevelSpec, MultiplicativeWeightsSpec):
    """Multiplicative weights over every kind of group: its columns, and who is in it."""

    paper: ClassVar[str] = f"{PAPER}, algorithm 1 (MWEM)"
    needs_histogram: ClassVar[bool] = True

    name: Literal["h_mwem"]
    """Always `h_mwem`."""

    def cells(self, used: Sequence[str], schema: Schema) -> int:
        """One weight for every combination of the group's columns and multiset of individuals."""
        linked = as_linked(schema)
        of_groups = set(linked.group_attributes)
        groups = math.prod(schema.sizes[name] for name in used if name in of_groups)
        kinds = math.prod(schema.sizes[name] for name in used if name not in of_groups)
        members = range(1, linked.max_group_size + 1)
        return groups * sum(math.comb(kinds + size - 1, size) for size in members)

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """The weights, their sum over the rounds, and a step's changes; and who is in each multiset."""
        linked = as_linked(setting.schema)
        groups = (*measured, *setting.asked)
        used = {name for group in groups for name in group.attributes}
        of_groups = set(linked.group_attributes)
        cells = self.cells(sorted(used), linked)
        multisets = self.cells(sorted(used - of_groups), linked)
        copies = 6 if self.output == "average" else 5
        members = DOUBLE * multisets * linked.max_group_size
        told_apart = {
            (group.level, tuple(name for name in group.attributes if name not in of_groups))
            for group in groups
            if isinstance(group, HierarchicalGroup)
        }
        remembered = min(CACHED_BYTES, 2 * members * len(told_apart))
        return DOUBLE * copies * cells + 3 * members + remembered


class HierarchicalGem(TwoLevelSpec, GenerativeSpec):
    """A generator network of groups: their size, their columns, and one individual for each place."""

    paper: ClassVar[str] = f"{PAPER}, section 4.2 (H-GEM)"
    query_types: ClassVar[tuple[str, ...]] = TwoLevelSpec.query_types

    name: Literal["h_gem"]
    """Always `h_gem`."""
    steps: Steps = 100
    """Upper bound on the optimiser's steps in each round."""

    def choose_measured(self, setting: Setting) -> list[Group]:
        """What is asked, where its cells stand out from their noise; pairs of its columns, where not.

        A household moves counts of groups less than those of individuals, about whom they say much
        too: if anything is counted in groups, then all pairs are.
        """
        if self._stands_out(setting):
            return setting.asked
        pairs = list(dict.fromkeys(pair for group in setting.asked for pair in _pairs_of(group)))
        if setting.protection.unit != "household":
            return pairs
        of_groups = [
            pair
            for pair in pairs
            if not (isinstance(pair, HierarchicalGroup) and pair.level == "individual")
        ]
        return of_groups or pairs

    def default_pace(self, measured: Sequence[Group], setting: Setting) -> tuple[int, int]:
        """Everything once, where cells stand out; where not, what other mixtures measure, or twice that.

        The more noise there is, the sooner a fit follows it: fewer rounds are fewer steps.
        """
        worth, _ = super().default_pace(measured, setting)
        candidates = max(1, self.candidates(moved_of(measured, setting), setting.schema))
        rounds = self._rounds_of(worth, measured, setting)
        if self._stands_out(setting):
            measurements = candidates
        elif setting.protection.unit == "household":
            measurements, rounds = TIMES_AS_MANY * worth, FEW_ROUNDS
        else:
            measurements = worth
        measurements = max(1, min(measurements, candidates))
        per_round = max(1, round(measurements / rounds))
        return measurements // per_round, per_round

    def _rounds_of(self, worth: int, measured: Sequence[Group], setting: Setting) -> int:
        # Rounds were studied where a unit moves two cells by one; moving more is like a smaller budget.
        moved = max(
            group.sensitivity(setting.schema, setting.protection).l2_squared for group in measured
        )
        less = math.sqrt(math.sqrt(max(2, moved) / 2))
        return max(1, round(worth / MEASUREMENTS_PER_ROUND / less))

    def _stands_out(self, setting: Setting) -> bool:
        """Whether an average cell of what is asked holds several times its noise (docs/defaults.md).

        If as much of it were measured as other mixtures would measure.
        """
        candidates = self.candidates(setting.asked, setting.schema)
        worth, _ = super().default_pace(setting.asked, setting)
        # Of a small table nothing may be worth it, and one is measured all the same.
        measured = max(1, min(worth, candidates))
        rho = rho_of_units(setting.units) * (1 - self.opening_share) / measured
        ratios = []
        for group in setting.asked:
            l2_squared = group.sensitivity(setting.schema, setting.protection).l2_squared
            sigma = math.sqrt(max(1, l2_squared) / (2 * rho))
            ratios.append(setting.rows / group.size(setting.schema) / sigma)
        return statistics.median(ratios) > VISIBLE

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """The network, what it puts out for every place in a group, and the tables made from that."""
        linked = as_linked(setting.schema)
        places, of_groups = linked.max_group_size, set(linked.group_attributes)
        own = sum(size for name, size in linked.sizes.items() if name not in of_groups)
        codes = places + sum(linked.sizes.values()) + (places - 1) * own
        rounds, per_round = self.pace(measured, setting)
        moved = moved_of(measured, setting)
        share = min(1.0, rounds * per_round / max(1, len(moved)))
        # Everything public is fitted from the start.
        first = {*self.opened(measured, linked), *(set(measured) - set(moved))}
        entries = share * sum(_entries_of(group, linked) for group in moved)
        tables = self.components * (entries + sum(_entries_of(group, linked) for group in first))
        if tables > KEPT_TABLES * MAX_ENTRIES:
            tables = RECOMPUTED_TABLES * MAX_ENTRIES
        plans = min(rounds, KEPT_PLANS) * share * queries_of(measured, linked)
        return (
            self.generator_bytes(codes)
            + round(SINGLE * tables + DOUBLE * plans)
            + SINGLE * MAX_ENTRIES
            + BYTES_PER_QUERY * queries_of(measured, linked)
        )


def _pairs_of(group: Group) -> Iterable[Group]:
    if not isinstance(group, HierarchicalGroup) or len(group.attributes) <= 2:
        return [group]
    return [HierarchicalGroup(pair, group.level) for pair in combinations(group.attributes, 2)]


def _entries_of(group: Group, schema: LinkedSchema) -> int:
    of_groups = [schema.sizes[name] for name in group.attributes if name in schema.group_attributes]
    own = [schema.sizes[name] for name in group.attributes if name not in schema.group_attributes]
    # Without attributes of individuals, the last one of groups is a factor of its own.
    cells = [math.prod(of_groups)] if own else [math.prod(of_groups[:-1]), *of_groups[-1:]]
    return linked_entries(
        places=schema.max_group_size, order=len(own), kinds=math.prod(own), cells=cells
    )
