"""Responses of the service. Unknown fields, which a newer service may add, are kept."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

FINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})


class Record(BaseModel):
    """A response of the service."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Key(Record):
    """An API key; `key` is the secret, shown only when it is created."""

    id: str
    name: str
    scopes: list[str]
    key: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class Account(Record):
    """The budget of a population."""

    rho_cap: float
    rho_spent: float
    rho_reserved: float
    rho_left: float
    epsilon_spent: float
    delta: float
    as_of: datetime | None = None
    """The midnight (UTC) of this balance; None: the current balance, which only curators see."""


class Population(Record):
    """Protected people and their budget."""

    id: str
    name: str
    unit: str
    relation: str
    delta: float
    budget: Account


class LedgerEntry(Record):
    """One change of a population's balance."""

    seq: int
    kind: str
    rho: float
    hash: str
    previous_hash: str
    release_id: str | None = None
    operation: int | None = None


class Verification(Record):
    """The result of a check of the ledger."""

    ok: bool
    entries: int
    head: str


class SavedSchema(Record):
    """One version of a schema that the service keeps under a name."""

    id: str
    name: str
    version: int
    created_at: datetime
    declared_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    """The saved schema; None in lists."""


class Dataset(Record):
    """A declared table: never its rows, nor their number."""

    id: str
    name: str
    visibility: str
    state: str
    population_id: str | None = None
    reason: str | None = None
    declared_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    """The declared schema; None in lists."""
    schema_id: str | None = None
    """The saved schema that it was declared with, if it was."""


class Mechanism(Record):
    """An algorithm that a release may use."""

    name: str
    summary: str
    paper: str
    parameters: dict[str, Any]
    query_types: list[str]


class Artifact(Record):
    """A released file."""

    name: str
    size: int
    sha256: str
    media_type: str


class Progress(Record):
    """Progress of a job."""

    done: int
    total: int


class PassedOver(Record):
    """A mechanism that was not chosen, and why."""

    mechanism: str
    reason: str


class Choice(Record):
    """Why a mechanism was chosen."""

    reasons: list[str]
    passed_over: list[PassedOver]


class QualityOfItem(Record):
    """The certified error of one item of the workload."""

    item: str
    mean_total_variation: float
    estimate: float


class QualityOfColumn(Record):
    """The certified error of one column's distribution."""

    name: str
    total_variation: float
    estimate: float


class ReleaseQuality(Record):
    """The certified error of released rows: upper bounds, as fractions, and estimates."""

    summary: str
    """The main figures, in one sentence."""
    confidence: float
    max_error: float
    mean_total_variation: float
    estimate: float
    items: list[QualityOfItem]
    columns: list[QualityOfColumn]


class Notice(Record):
    """A limit of a release; `detail` is a sentence with the remedy."""

    type: str
    detail: str


class Release(Record):
    """A release: its request, progress, cost and results."""

    id: str
    state: str
    progress: Progress
    rho_spent: float
    artifacts: list[Artifact]
    epsilon: float | None = None
    """The epsilon that it guarantees at the population's delta."""
    accounting: str | None = None
    """How this epsilon is computed: `exact_gaussian` or `zcdp`."""
    error: dict[str, Any] | None = None
    published: bool = False
    dataset_id: str | None = None
    table: str | None = None
    """For two-level data, the table that was released alone."""
    columns: list[str] = []
    """The names of the released columns, in order."""
    mechanism: dict[str, Any] = {}
    choice: Choice | None = None
    quality: ReleaseQuality | None = None
    """The certified error of its rows, once it has succeeded and if it was requested."""
    warnings: list[Notice] = []
    """Limits of the release: those of its preview and, once it has succeeded, those that follow from the
    counted number of rows."""

    @property
    def is_over(self) -> bool:
        """Whether the release has ended."""
        return self.state in FINAL_STATES


class Errors(Record):
    """Errors as shares of the rows."""

    mean_absolute_error: float
    mean_total_variation: float | None
    """Null if nothing asked is a table of marginals."""
    max_error: float


class ExpectedErrors(Errors):
    """Expected errors of what is delivered."""

    mean_absolute_rows: float
    """The mean absolute error as a number of rows."""
    max_rows: float
    low: Errors
    """The lower end of the range in which about 80% of similar releases fell."""
    high: Errors


class CurvePoint(Record):
    """The same release at another budget."""

    epsilon: float
    rho: float
    expected: ExpectedErrors


class NeededBudget(Record):
    """The smallest budget that is expected to reach a target."""

    epsilon: float
    rho: float


class ItemForecast(Record):
    """The forecast of one item of a workload."""

    item: int
    queries: int
    sigma: float | None
    expected_error: float | None
    expected: ExpectedErrors


class BinsCost(Record):
    """What places the edges of adaptive bins: a part of the release's cost."""

    columns: list[str]
    share: float
    """The share of the release's budget."""
    rho: float


class DrawsCost(Record):
    """What further sets of rows (`outputs.draws`) add to a release."""

    sets: int
    fits: int
    """Models that are fitted in all: the release takes about as many times as long."""
    memory_bytes: int | None
    storage_bytes: int


class Preview(Record):
    """The cost and the expected accuracy of a release."""

    rho: float
    epsilon: float
    rho_left_after: float
    queries: int
    operations: int | None
    bins: BinsCost | None = None
    """What places the edges of adaptive bins; None if no released column has any."""
    draws: DrawsCost | None = None
    """What further sets of rows add; None if the release asks for none."""
    expected: ExpectedErrors
    items: list[ItemForecast]
    left_out_columns: list[str] = []
    """The declared columns that would not be released, because no query mentions them."""
    rules: int = 0
    """The number of the schema's rules about the released columns."""
    warnings: list[Notice]
    curve: list[CurvePoint] = []
    needed: NeededBudget | None = None
    needed_reason: str | None = None
    """Why no budget is expected to reach the target."""
    mechanism: dict[str, Any] = {}
    choice: Choice | None = None
    accounting: str | None = None
    """How epsilon is computed: `exact_gaussian` or `zcdp`."""
    processor_seconds: float | None = None
    """About how long a worker would compute, if it is known."""


class Answer(Record):
    """One answer of a released model."""

    item: str
    query: str
    value: Annotated[float, Field(validation_alias=AliasChoices("value", "fraction"))]
    """The answer as a share; files of earlier versions call it `fraction`."""
    count: float
    standard_error: float | None = None
    """Standard error of the value, if known."""
    count_standard_error: float | None = None
    """Standard error of the count, if known."""
    basis: str | None = None
    """`measured`, `model` or `independent`; None in files of earlier versions."""


class Event(Record):
    """An event of a release; `kind` is `state` or `progress`."""

    id: int
    kind: str
    data: dict[str, Any]
