"""Parameters of mechanisms whose model is a table of rows in the declared types."""

from typing import Annotated, ClassVar

from pydantic import Field

from scrim.spec.mechanism.adaptive import AdaptiveSpec
from scrim.spec.mechanism.base import ROW_TYPES

SearchedRows = Annotated[int, Field(ge=1, le=1_000_000)]


class RowsSpec(AdaptiveSpec):
    """A mechanism whose model is a table of rows in the declared types."""

    needs_bins: ClassVar[bool] = False
    query_types: ClassVar[tuple[str, ...]] = ROW_TYPES

    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.3
    """Share of the budget for measuring the distribution of every column once, before the first
    round: one-way marginals, and binary trees of numbers without bins."""
