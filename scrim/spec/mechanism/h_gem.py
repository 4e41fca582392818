"""`h_gem`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.base import TWO_LEVEL_TYPES
from scrim.spec.mechanism.mixture import GenerativeSpec, Steps
from scrim.spec.mechanism.two_level import PAPER, OpeningShareOfLevels


class HierarchicalGem(GenerativeSpec):
    """A generator network of groups: their size, their columns, and one individual for each place."""

    paper: ClassVar[str] = f"{PAPER}, section 4.2 (H-GEM)"
    two_level: ClassVar[bool] = True
    one_level: ClassVar[bool] = False
    query_types: ClassVar[tuple[str, ...]] = TWO_LEVEL_TYPES

    name: Literal["h_gem"]
    """Always `h_gem`."""
    opening_share: OpeningShareOfLevels = 0.2
    steps: Steps = 100
    """Upper bound on the optimiser's steps in each round."""
