"""The choice of a mechanism, left to what is known in public (synth/planning/choice.py)."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.base import NamedSpec


class Auto(NamedSpec):
    """Chooses a mechanism by what is declared and asked, never by the rows; the preview says why."""

    paper: ClassVar[str] = "Paper and parameters are those of the mechanism that is chosen"
    query_types: ClassVar[tuple[str, ...]] = (
        "marginals",
        "ranges",
        "binary_tree",
        "prefixes",
        "halfspaces",
        "hierarchical",
        "group_sizes",
    )
    takes_public_data: ClassVar[bool] = True

    name: Literal["auto"]
    """Always `auto`."""
    goal: Literal["mean_error", "max_error"] = "mean_error"
    """Which error of the answers should be small. They differ where most cells drown in their noise."""
