"""What may be asked of a released model."""

from typing import Annotated

from pydantic import Field

from scrim.spec.base import Spec
from scrim.spec.workload import Workload

MAX_SAMPLE_ROWS = 100_000
"""More rows than this belong into a release, not into an answer."""


class Question(Spec):
    """Questions to a released model."""

    workload: Workload
    """What is asked: at most 100,000 queries, where each cell of a marginal is one."""


class SampleRequest(Spec):
    """Rows to be drawn from a released model."""

    rows: Annotated[int, Field(ge=1, le=MAX_SAMPLE_ROWS, examples=[1000])]
    """How many; groups, where groups of individuals were released, each with as many rows as it has
    individuals."""
