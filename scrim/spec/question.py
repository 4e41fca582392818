"""Requests to a released model."""

from typing import Annotated

from pydantic import Field

from scrim.spec.base import Spec
from scrim.spec.workload import Workload

MAX_SAMPLE_ROWS = 100_000
"""Largest number of rows in one sample; request a release for more."""


class Question(Spec):
    """Queries to a released model."""

    workload: Workload
    """The queries: at most 100,000, where each cell of a marginal is one query."""


class SampleRequest(Spec):
    """A request for rows drawn from a released model."""

    rows: Annotated[int, Field(ge=1, le=MAX_SAMPLE_ROWS, examples=[1000])]
    """Number of rows. If groups of individuals were released: number of groups, each with one row per
    individual."""
