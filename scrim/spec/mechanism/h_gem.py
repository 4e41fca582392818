"""`h_gem`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.mixture import GenerativeSpec, Steps
from scrim.spec.mechanism.two_level import PAPER, QUERY_TYPES, OpeningShareOfLevels


class HierarchicalGem(GenerativeSpec):
    """A generator network of groups: their size, their columns, and one individual for each place."""

    paper: ClassVar[str] = f"{PAPER}, section 4.2 (H-GEM)"
    two_level: ClassVar[bool] = True
    query_types: ClassVar[tuple[str, ...]] = QUERY_TYPES

    name: Literal["h_gem"]
    """Always `h_gem`."""
    opening_share: OpeningShareOfLevels = 0.2
    steps: Steps = 100
    """Upper bound on the optimiser's steps in each round."""
