"""The body of a preview: a release request, with budgets to compare and an accuracy to reach."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from scrim.spec.base import Spec
from scrim.spec.release import ReleaseRequest

MOST_BUDGETS = 20
"""Largest number of budgets to compare; each needs a plan of its own."""

Share = Annotated[float, Field(gt=0, le=1)]


class ComparedBudget(Spec):
    """A budget to compare."""

    epsilon: Annotated[float, Field(gt=0, le=1000)]
    """Converted to rho at the population's delta."""


class AccuracyTarget(Spec):
    """The accuracy to reach: the largest accepted value of one or more expected errors."""

    mean_absolute_error: Share | None = None
    """Of all answers, as a share of the rows."""
    mean_total_variation: Share | None = None
    """Of all asked tables."""
    max_error: Share | None = None
    """Of any answer, as a share of the rows."""

    @model_validator(mode="after")
    def _names_an_error(self) -> Self:
        if not self.model_dump(exclude_none=True):
            raise ValueError(
                "give at least one of mean_absolute_error, mean_total_variation and max_error"
            )
        return self


class PreviewRequest(ReleaseRequest):
    """A release request, and what else to forecast for it."""

    budgets: Annotated[list[ComparedBudget], Field(max_length=MOST_BUDGETS)] = []
    """Other budgets to forecast the same release at; the answer is `curve`."""
    target: AccuracyTarget | None = None
    """An accuracy; the answer is `needed`, the smallest budget that is expected to reach it."""
