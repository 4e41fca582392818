"""`h_mwem`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.two_level import PAPER, QUERY_TYPES, OpeningShareOfLevels
from scrim.spec.mechanism.weights import MultiplicativeWeightsSpec


class HierarchicalMwem(MultiplicativeWeightsSpec):
    """Multiplicative weights over all kinds of groups: a group's columns and its individuals."""

    paper: ClassVar[str] = f"{PAPER}, algorithm 1 (MWEM)"
    two_level: ClassVar[bool] = True
    query_types: ClassVar[tuple[str, ...]] = QUERY_TYPES
    needs_histogram: ClassVar[bool] = True

    name: Literal["h_mwem"]
    """Always `h_mwem`."""
    opening_share: OpeningShareOfLevels = 0.2
