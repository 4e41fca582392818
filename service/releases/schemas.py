"""Bodies and answers about releases. The body that creates one is scrim.spec.release.ReleaseRequest."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from scrim.spec.budget import Budget, rho_of_units
from scrim.spec.choice import MechanismChoice
from scrim.spec.quality import Quality
from scrim.spec.two_level import LevelTable
from service.data.ledger.records import LedgerAccount
from service.data.releases import ShownRelease
from service.data.views import View, day_of
from synth.planning.accounting import Method, stated_epsilon
from synth.planning.choice import Resolved
from synth.planning.forecast import Forecast

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


class ItemForecastView(View):
    """The forecast of one item of the workload."""

    item: int
    """Its position in the workload, counted from 0."""
    type: Annotated[str, Field(examples=["marginals"])]
    """Its type."""
    queries: int
    """The number of its counting queries."""
    sigma: float | None
    """Standard deviation of the noise on each measured count; the largest if they differ. For `gaussian`, the
    root mean square of the standard errors of the answers, in counts."""
    expected_error: float | None
    """Mean absolute error that this noise causes, in counts."""


class PreviewView(View):
    """The cost and the expected accuracy of a release. Neither data nor budget was used."""

    rho: float
    """The amount that the release would reserve."""
    epsilon: float
    """The epsilon that the release would guarantee at the population's delta, rounded up."""
    accounting: Method
    """How this epsilon is computed: `exact_gaussian`, from the exact curve of a release of Gaussian noise
    alone, or `zcdp`, converted from rho."""
    rho_left_after: float
    """What the population would have left; if negative, the release would be refused."""
    mechanism: dict[str, Any]
    """The mechanism and its parameters; the one that would be chosen, if `auto` is requested."""
    choice: MechanismChoice | None
    """Why this mechanism would be chosen, if `auto` is requested; otherwise null."""
    queries: int
    """The number of counting queries in the workload."""
    operations: int | None
    """The number of charged operations on the data, if it is known in advance; the maximum, if rounds
    are annealed."""
    memory_bytes: int | None
    """Approximate memory that a worker would need to fit the model, draw the rows and write the files,
    in addition to an idle worker's; null if it is not known in advance."""
    items: list[ItemForecastView]
    """The forecast of each item of the workload; last, of those about columns that only `outputs.columns`
    names."""
    left_out_columns: list[str]
    """The declared columns that would not be released, because no query mentions them."""
    warnings: list[str]
    """Possible surprises, such as a release that would be refused."""

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
        """Build the view from the plan, its forecast and the population's remaining budget."""
        release, units = resolved.release, resolved.funded.units
        left = account.left_units
        short = f"the population has {rho_of_units(left):g} rho left: this release would be refused"
        return cls(
            rho=rho_of_units(units),
            epsilon=resolved.funded.epsilon(delta),
            accounting=resolved.funded.method(delta),
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
            left_out_columns=resolved.plan.left_out,
            warnings=[*([short] if units > left else []), *forecast.warnings, *warnings],
        )


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
