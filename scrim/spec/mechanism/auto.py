"""`auto`: the choice of a mechanism from public facts (synth/planning/choice.py)."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.base import NamedSpec


class Auto(NamedSpec):
    """Chooses a mechanism from the schema and the request, never from the rows; the preview says why."""

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
    """The error of the answers to minimise, if mechanisms or their settings differ in that."""
