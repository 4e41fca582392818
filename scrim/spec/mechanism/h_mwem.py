"""`h_mwem`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.two_level import PAPER, QUERY_TYPES, OpeningShareOfLevels
from scrim.spec.mechanism.weights import MultiplicativeWeightsSpec


class HierarchicalMwem(MultiplicativeWeightsSpec):
    """Multiplicative weights over every kind of group: its columns, and who is in it."""

    paper: ClassVar[str] = f"{PAPER}, algorithm 1 (MWEM)"
    two_level: ClassVar[bool] = True
    query_types: ClassVar[tuple[str, ...]] = QUERY_TYPES
    needs_histogram: ClassVar[bool] = True

    name: Literal["h_mwem"]
    """Always `h_mwem`."""
    opening_share: OpeningShareOfLevels = 0.2
