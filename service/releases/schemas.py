"""Bodies and answers about releases. The body that creates one is scrim.spec.release.ReleaseRequest."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from scrim.spec.budget import Budget, rho_of_units
from scrim.spec.choice import MechanismChoice
from scrim.spec.quality import Quality
from scrim.spec.two_level import LevelTable
from service.data.releases import ShownRelease
from service.data.views import View, day_of
from synth.planning.accounting import Method, stated_epsilon
from synth.planning.forecast_warnings import Warning

State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Basis = Literal["measured", "model", "independent"]
"""What an answer is based on."""
MAX_ANSWERS = 100_000
"""Maximum queries of one response; ask for more in a release."""

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
    """Progress of a job in rounds, which do not depend on the rows."""

    done: int
    """Completed steps."""
    total: int
    """All steps; 0 before the job has begun."""


class ArtifactView(View):
    """A released file."""

    name: Annotated[str, Field(examples=["synthetic.csv"])]
    """The name to download it by."""
    size: int
    """Its size in bytes."""
    sha256: str
    """Hash of its content, in hex; also its ETag."""
    media_type: str
    """Its format."""


class WarningView(View):
    """A limit of a release that the curator should know."""

    type: Annotated[str, Field(examples=["/warnings/relations-not-kept"])]
    """Its type, which does not change."""
    detail: str
    """One sentence, with the remedy."""

    @classmethod
    def of(cls, warning: Warning) -> "WarningView":
        """The same, for an answer."""
        return cls(type=warning.type, detail=warning.detail)


class ReleaseView(View):
    """A release: its request, progress, cost and results."""

    id: UUID
    """The release's id."""
    state: State
    """The state; the last three are final."""
    progress: ProgressView
    """Progress of its job."""
    rho: float
    """The most that it may spend."""
    rho_spent: float
    """What it has spent."""
    epsilon: float
    """The epsilon that it guarantees at the population's delta. If the budget was given as rho, the
    certificate may state a smaller one."""
    accounting: Method
    """How this epsilon is computed: `exact_gaussian`, from the exact curve of a release of Gaussian noise
    alone, or `zcdp`, converted from rho."""
    error: dict[str, Any] | None
    """Why it failed; null if it did not."""
    quality: Quality | None = None
    """The certified error of the released rows; null before it has succeeded, and without `certify`."""
    artifacts: list[ArtifactView]
    """The files that can be downloaded."""
    dataset_id: UUID
    """The private dataset."""
    public_dataset_id: UUID | None
    """The public dataset that it uses, if any."""
    population_id: UUID
    """The population whose budget it spends."""
    workload: list[dict[str, Any]]
    """The requested queries, and those about columns that only `outputs.columns` names."""
    mechanism: dict[str, Any]
    """The mechanism and its parameters; the chosen one, if `auto` was requested."""
    choice: MechanismChoice | None
    """Why this mechanism was chosen, if `auto` was requested; otherwise null."""
    warnings: list[WarningView]
    """Limits of the release, each with its remedy: those of its preview and, once it has succeeded, those
    that follow from the counted number of rows."""
    budget: dict[str, Any]
    """The budget as requested."""
    outputs: dict[str, Any]
    """The requested outputs."""
    columns: list[str]
    """The names of the released columns, in order; for two-level data, those of groups first."""
    table: LevelTable | None = None
    """For two-level data, the table that is released alone; null if both are released, or if there is
    only one table."""
    published: bool
    """Whether analysts see it, once it has succeeded."""
    dry_run: bool
    """Whether it runs on rows drawn from the declared schema alone."""
    cancel_requested: bool
    """Whether the worker was asked to stop."""
    created_at: datetime
    """When it was requested; for an analyst, midnight (UTC) of that day."""
    started_at: datetime | None
    """When a worker started it; null for an analyst."""
    finished_at: datetime | None
    """When it ended; null for an analyst."""

    @classmethod
    def of(cls, release: ShownRelease) -> "ReleaseView":
        """A release, for curators, who may see durations."""
        budget = Budget.model_validate(release.spec["budget"])
        epsilon, method = stated_epsilon(budget, release.units, release.delta)
        return cls.model_validate(
            {
                **release._asdict(),
                **release.spec,
                "progress": {"done": release.progress_done, "total": release.progress_total},
                "rho": rho_of_units(release.units),
                "rho_spent": rho_of_units(release.spent_units),
                "epsilon": epsilon,
                "accounting": method,
            }
        )

    def without_durations(self) -> "ReleaseView":
        """The same without durations, for other callers: how long a job took can depend on the rows."""
        coarse = {"created_at": day_of(self.created_at), "started_at": None, "finished_at": None}
        return self.model_copy(update=coarse)


class ModelAnswer(View):
    """One answer of a released model."""

    item: str
    """The item of the workload, such as the columns of a marginal."""
    query: str
    """The cell."""
    value: float
    """The answer as a share of all rows, or of all groups or individuals if these are counted."""
    count: float
    """The answer as a count."""
    standard_error: float | None
    """Standard error of the value; null if the model's file has none. For noisy answers it includes the noise
    of the number of rows, if private."""
    count_standard_error: float | None
    """Standard error of the count; null if the model's file has none."""
    basis: Basis
    """`measured`: the query, or cells that it sums, was measured. `model`: inferred from other measurements.
    `independent`: nothing that was measured relates its columns."""


class ModelAnswers(View):
    """Answers of a released model. They cost no budget."""

    items: list[ModelAnswer]
    """An answer for each query."""
    next: None = None
    """Always null: there is one page."""
