"""Bodies and answers about releases. The body that creates one is scrim.spec.release.ReleaseRequest."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from scrim.spec.budget import epsilon_of_units, rho_of_units
from scrim.spec.choice import MechanismChoice
from scrim.spec.two_level import LevelTable
from service.data.ledger.records import LedgerAccount
from service.data.releases import ShownRelease
from service.data.views import View, day_of
from synth.planning.choice import Resolved
from synth.planning.forecast import Forecast

State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
MAX_ANSWERS = 100_000
"""More queries than this belong into a release, not into an answer."""

EXAMPLE = {
    "dataset_id": "7d0f6f0e-9f0c-4a4e-8a53-0d6f6b1b2a11",
    "workload": [{"type": "marginals", "k": 2}],
    "mechanism": {"name": "mwem", "rounds": 20},
    "budget": {"epsilon": 1.0},
    "outputs": {"rows": 50000, "formats": ["csv"], "answers": True, "certify": {"share": 0.02}},
    "publish": False,
    "dry_run": False,
}


class ProgressView(View):
    """How far a job is: rounds, nothing that depends on the rows."""

    done: int
    """Steps that are done."""
    total: int
    """Steps that there are; 0 before the job has begun."""


class ArtifactView(View):
    """A released file."""

    name: Annotated[str, Field(examples=["synthetic.csv"])]
    """What to download it by."""
    size: int
    """Its bytes."""
    sha256: str
    """Hash of its content, in hex; also its ETag."""
    media_type: str
    """Its format."""


class ReleaseView(View):
    """A release: what was asked, how far it is, what it cost and what came out."""

    id: UUID
    """What to ask for it by."""
    state: State
    """Where it is in its life; the last three are final."""
    progress: ProgressView
    """How far it is."""
    rho: float
    """What it may spend at most."""
    rho_spent: float
    """What it has spent."""
    error: dict[str, Any] | None
    """Why it failed."""
    artifacts: list[ArtifactView]
    """What can be downloaded."""
    dataset_id: UUID
    """The private dataset."""
    public_dataset_id: UUID | None
    """The public dataset that assists, if any."""
    population_id: UUID
    """The people who pay for it."""
    workload: list[dict[str, Any]]
    """What is asked."""
    mechanism: dict[str, Any]
    """How it is computed; what was chosen, where `auto` was asked for."""
    choice: MechanismChoice | None
    """Why it is computed so, where `auto` was asked for; otherwise null."""
    budget: dict[str, Any]
    """What it may cost, as it was given."""
    outputs: dict[str, Any]
    """What it contains."""
    table: LevelTable | None = None
    """Of groups and individuals, the table that is released alone; null where it is both, or there
    is one table of rows."""
    published: bool
    """Whether analysts see it, once it has succeeded."""
    dry_run: bool
    """Whether it runs on rows drawn from the declared schema alone."""
    cancel_requested: bool
    """Whether the worker was asked to stop."""
    created_at: datetime
    """When it was asked for; to an analyst, midnight (UTC) of that day."""
    started_at: datetime | None
    """When a worker began; null to an analyst."""
    finished_at: datetime | None
    """When it ended; null to an analyst."""

    @classmethod
    def of(cls, release: ShownRelease) -> "ReleaseView":
        """A release, for those who may see the rows."""
        return cls.model_validate(
            {
                **release._asdict(),
                **release.spec,
                "progress": {"done": release.progress_done, "total": release.progress_total},
                "rho": rho_of_units(release.units),
                "rho_spent": rho_of_units(release.spent_units),
            }
        )

    def without_durations(self) -> "ReleaseView":
        """The same for those who may not see the rows: how long a job took can depend on them."""
        coarse = {"created_at": day_of(self.created_at), "started_at": None, "finished_at": None}
        return self.model_copy(update=coarse)


class ItemForecastView(View):
    """What to expect of one item of the workload."""

    item: int
    """Its position in the workload, counted from 0."""
    type: Annotated[str, Field(examples=["marginals"])]
    """Its type."""
    queries: int
    """How many counting queries it stands for."""
    sigma: float | None
    """Standard deviation of the noise on each measured count; the largest, where they differ."""
    expected_error: float | None
    """Mean absolute error that this noise causes, in counts."""


class PreviewView(View):
    """What a release would cost and how accurate it would be. Nothing was touched."""

    rho: float
    """What the release would reserve."""
    epsilon: float
    """At the population's delta, rounded up."""
    rho_left_after: float
    """What the population would have left; below zero, the release would be refused."""
    mechanism: dict[str, Any]
    """How it would be computed; what would be chosen, where `auto` is asked for."""
    choice: MechanismChoice | None
    """Why it would be computed so, where `auto` is asked for; otherwise null."""
    queries: int
    """How many counting queries the workload stands for."""
    operations: int | None
    """How many priced looks at the data there would be, where that is known beforehand; at most so
    many, where rounds are annealed."""
    memory_bytes: int | None
    """About how much memory a worker would need to fit the model, draw the rows and write the files,
    beside what it takes at rest; null where that is not known beforehand."""
    items: list[ItemForecastView]
    """What to expect of each item of the workload."""
    warnings: list[str]
    """What you may not have expected."""

    @classmethod
    def of(
        cls,
        resolved: Resolved,
        forecast: Forecast,
        account: LedgerAccount,
        *,
        delta: float,
        warnings: Sequence[str] = (),
    ) -> "PreviewView":
        """From the plan and its forecast, and what the population has left."""
        release, units = resolved.release, resolved.release.budget.units(delta)
        left = account.left_units
        short = f"the population has {rho_of_units(left):g} rho left: this release would be refused"
        return cls(
            rho=rho_of_units(units),
            epsilon=epsilon_of_units(units, delta),
            rho_left_after=rho_of_units(left - units),
            mechanism=release.mechanism.model_dump(mode="json", exclude_none=True),
            choice=resolved.choice,
            queries=sum(item.queries for item in forecast.items),
            operations=forecast.operations,
            memory_bytes=resolved.plan.peak_bytes,
            items=[
                ItemForecastView(item=position, **vars(item))
                for position, item in enumerate(forecast.items)
            ],
            warnings=[*([short] if units > left else []), *forecast.warnings, *warnings],
        )


class ModelAnswer(View):
    """One answer of a released model."""

    item: str
    """What was asked together: the columns of a marginal."""
    query: str
    """The cell."""
    fraction: float
    """The answer as a share of all rows; of groups or of individuals, where these are counted."""
    count: float
    """The answer as a number of them."""
    standard_error: float | None
    """Of the fraction, where it is known: with the noise of the number of rows, if that is private."""
    count_standard_error: float | None
    """Of the count, where it is known."""


class ModelAnswers(View):
    """Answers of a released model, at no cost."""

    items: list[ModelAnswer]
    """An answer for each query."""
    next: None = None
    """Always null: there is one page."""
