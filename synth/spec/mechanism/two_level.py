"""Mechanisms for groups of individuals (Liu, Wu 2022)."""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from synth.spec.mechanism.adaptive import AdaptiveSpec
from synth.spec.mechanism.base import Setting
from synth.spec.mechanism.histogram import MultiplicativeWeightsSpec
from synth.spec.mechanism.product import GenerativeSpec
from synth.spec.memory import (
    BYTES_PER_QUERY,
    DOUBLE,
    OUTPUT_COPIES,
    SINGLE,
    network_bytes,
    queries_of,
)
from synth.spec.schema import Schema
from synth.spec.workload import (
    NUMBER_OF_INDIVIDUALS,
    Group,
    GroupSizesGroup,
    HierarchicalGroup,
)
from synth.spec.workload.hierarchical import as_linked

PAPER = "Liu, Wu (2022), Towards Differentially Private Query Release for Hierarchical Data"


class TwoLevelSpec(AdaptiveSpec):
    """What mechanisms for linked tables share."""

    two_level: ClassVar[bool] = True
    query_types: ClassVar[tuple[str, ...]] = ("hierarchical", "group_sizes")

    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Share of the budget for measuring, before the first round, the number of individuals, the sizes
    of groups, and every column alone at its own level."""

    def opened(self, measured: Sequence[Group], schema: Schema) -> tuple[Group, ...]:
        """Individuals, sizes, and every column that some candidate is about."""
        if not self.opening_share:
            return ()
        linked = as_linked(schema)
        of_groups = set(linked.group_attributes)
        names = dict.fromkeys(name for group in measured for name in group.attributes)
        return (
            NUMBER_OF_INDIVIDUALS,
            GroupSizesGroup(()),
            *(
                HierarchicalGroup((name,), "group" if name in of_groups else "individual")
                for name in names
            ),
        )


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
        """The weights and their sum over the rounds; at the end also its average, if asked for."""
        used = {name for group in (*measured, *setting.asked) for name in group.attributes}
        copies = 3 if self.output == "average" else 2
        return DOUBLE * copies * self.cells(sorted(used), setting.schema)


class HierarchicalGem(TwoLevelSpec, GenerativeSpec):
    """A generator network of groups: their size, their columns, and one individual for each place."""

    paper: ClassVar[str] = f"{PAPER}, section 4.2 (H-GEM)"
    query_types: ClassVar[tuple[str, ...]] = TwoLevelSpec.query_types

    name: Literal["h_gem"]
    """Always `h_gem`."""
    components: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Number of product distributions in the mixture."""

    def default_pace(self, measured: Sequence[Group], setting: Setting) -> tuple[int, int]:
        """As in the paper."""
        return 50, 1

    def choose_measured(self, setting: Setting) -> list[Group]:
        """What is asked."""
        return setting.asked

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """The network, what it puts out for every place in a group, and what that is compared with."""
        linked = as_linked(setting.schema)
        places = linked.max_group_size
        sizes = linked.sizes
        codes = places + sum(
            size * (1 if name in set(linked.group_attributes) else places)
            for name, size in sizes.items()
        )
        network = network_bytes(
            self.components, latent=self.latent, hidden=self.hidden, outputs=codes
        )
        outputs = SINGLE * OUTPUT_COPIES * self.components * codes
        return network + outputs + BYTES_PER_QUERY * queries_of(measured, setting.schema)
