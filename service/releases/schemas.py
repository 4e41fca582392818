"""Bodies and answers about releases. The body that creates one is synth.spec.release.ReleaseRequest."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from service.models import Artifact, ReleaseRow
from synth.spec.base import Spec
from synth.spec.budget import rho_of_units
from synth.spec.workload import Workload

State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
FINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})
MAX_SAMPLE_ROWS = 100_000
"""More rows than this belong into a release, not into an answer."""

EXAMPLE = {
    "dataset_id": "7d0f6f0e-9f0c-4a4e-8a53-0d6f6b1b2a11",
    "workload": [{"type": "marginals", "k": 2}],
    "mechanism": {"name": "mwem", "rounds": 20},
    "budget": {"epsilon": 1.0},
    "outputs": {"rows": 50000, "formats": ["csv"], "answers": True, "certify": {"share": 0.02}},
    "publish": False,
    "dry_run": False,
}


class ProgressView(BaseModel):
    """How far a job is: rounds, nothing that depends on the rows."""

    done: int
    total: int


class ArtifactView(BaseModel):
    """A released file."""

    name: Annotated[str, Field(examples=["synthetic.csv"])]
    size: int
    sha256: str
    media_type: str


class ReleaseView(BaseModel):
    """A release: what was asked, how far it is, what it cost and what came out."""

    id: UUID
    state: State
    progress: ProgressView
    rho: float
    """What it may spend at most."""
    rho_spent: float
    """What it has spent."""
    error: dict[str, Any] | None
    """Why it failed."""
    artifacts: list[ArtifactView]
    dataset_id: UUID
    public_dataset_id: UUID | None
    population_id: UUID
    workload: list[dict[str, Any]]
    mechanism: dict[str, Any]
    budget: dict[str, Any]
    outputs: dict[str, Any]
    published: bool
    dry_run: bool
    cancel_requested: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, row: ReleaseRow, spent_units: int, artifacts: Sequence[Artifact]) -> "ReleaseView":
        """The row of a release with what belongs to it."""
        plain = set(cls.model_fields) & {column.key for column in ReleaseRow.__table__.columns}
        return cls(
            **{name: getattr(row, name) for name in plain},
            **row.spec,
            progress=ProgressView(done=row.progress_done, total=row.progress_total),
            rho=rho_of_units(row.units),
            rho_spent=rho_of_units(spent_units),
            artifacts=[
                ArtifactView(
                    name=each.name,
                    size=each.size,
                    sha256=each.sha256.hex(),
                    media_type=each.media_type,
                )
                for each in artifacts
            ],
        )


class ItemForecast(BaseModel):
    """What to expect of one item of the workload."""

    item: int
    """Its position in the workload, counted from 0."""
    type: Annotated[str, Field(examples=["marginals"])]
    queries: int
    """How many counting queries it stands for."""
    sigma: float | None
    """Standard deviation of the noise on each measured count, where there is one scale."""
    expected_error: float | None
    """Mean absolute error that this noise causes, in counts."""


class Preview(BaseModel):
    """What a release would cost and how accurate it would be. Nothing was touched."""

    rho: float
    epsilon: float
    """At the population's delta, rounded up."""
    rho_left_after: float
    """What the population would have left; below zero, the release would be refused."""
    queries: int
    operations: int | None
    """How many priced looks at the data there would be, where that is known beforehand."""
    items: list[ItemForecast]
    warnings: list[str]


class Question(Spec):
    """Questions to a released model."""

    workload: Workload
    """What is asked."""


class SampleRequest(Spec):
    """Rows to be drawn from a released model."""

    rows: Annotated[int, Field(ge=1, le=MAX_SAMPLE_ROWS, examples=[1000])]
    """How many."""


class ModelAnswer(BaseModel):
    """One answer of a released model."""

    item: str
    query: str
    fraction: float
    count: float
    standard_error: float | None
    """Of the fraction, where it is known."""


class ModelAnswers(BaseModel):
    """Answers of a released model, at no cost."""

    items: list[ModelAnswer]
    next: None = None
