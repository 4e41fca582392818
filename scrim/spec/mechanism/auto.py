"""`auto`: the choice of a mechanism from public facts (synth/planning/choice.py)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.mechanism.base import ROW_TYPES, TWO_LEVEL_TYPES, NamedSpec


class Auto(NamedSpec):
    """Chooses a mechanism from the schema and the request, never from the rows; the preview says why."""

    paper: ClassVar[str] = "Paper and parameters are those of the mechanism that is chosen"
    two_level: ClassVar[bool] = True
    query_types: ClassVar[tuple[str, ...]] = (*ROW_TYPES, *TWO_LEVEL_TYPES)
    takes_public_data: ClassVar[bool] = True

    name: Literal["auto"]
    """Always `auto`."""
    goal: Literal["mean_error", "max_error"] = "mean_error"
    """The error of the answers to minimise, if mechanisms or their settings differ in that."""
    seconds: Annotated[float, Field(gt=0, le=86_400)] | None = Field(
        # Left out of stored requests without it: they and their hashes are older than this field.
        default=None,
        exclude_if=lambda seconds: seconds is None,
    )
    """The most processor seconds that the release may be expected to take. Only mechanisms whose time can be
    forecast are then considered."""
