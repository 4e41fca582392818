"""`h_mwem`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.base import TWO_LEVEL_TYPES
from scrim.spec.mechanism.two_level import PAPER, OpeningShareOfLevels
from scrim.spec.mechanism.weights import MultiplicativeWeightsSpec


class HierarchicalMwem(MultiplicativeWeightsSpec):
    """Multiplicative weights over all kinds of groups: a group's columns and its individuals."""

    paper: ClassVar[str] = f"{PAPER}, algorithm 1 (MWEM)"
    two_level: ClassVar[bool] = True
    one_level: ClassVar[bool] = False
    query_types: ClassVar[tuple[str, ...]] = TWO_LEVEL_TYPES
    needs_histogram: ClassVar[bool] = True

    name: Literal["h_mwem"]
    """Always `h_mwem`."""
    opening_share: OpeningShareOfLevels = 0.2
