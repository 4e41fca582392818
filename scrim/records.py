"""What the service answers. Fields that it adds one day are kept, and do no harm."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

FINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})


class Record(BaseModel):
    """An answer of the service."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Key(Record):
    """An API key; `key` is the secret, shown only when it is made."""

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
    """The midnight at which it was like this; None: it is like this now, as only curators see it."""


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
    """What a check of the ledger found."""

    ok: bool
    entries: int
    head: str


class Dataset(Record):
    """A declared table: never its rows, nor their number."""

    id: str
    name: str
    visibility: str
    state: str
    population_id: str | None = None
    reason: str | None = None
    declared_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    """Not in lists."""


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
    """How far a job is."""

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


class Release(Record):
    """What was asked, how far it is, what it cost and what came out."""

    id: str
    state: str
    progress: Progress
    rho_spent: float
    artifacts: list[Artifact]
    error: dict[str, Any] | None = None
    published: bool = False
    dataset_id: str | None = None
    table: str | None = None
    """Of two-level data, the table that was released alone."""
    mechanism: dict[str, Any] = {}
    choice: Choice | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in FINAL_STATES


class ItemForecast(Record):
    """What to expect of one item of a workload."""

    item: int
    queries: int
    sigma: float | None
    expected_error: float | None


class Preview(Record):
    """What a release would cost and how accurate it would be."""

    rho: float
    epsilon: float
    rho_left_after: float
    queries: int
    operations: int | None
    items: list[ItemForecast]
    warnings: list[str]
    mechanism: dict[str, Any] = {}
    choice: Choice | None = None


class Answer(Record):
    """One answer of a released model."""

    item: str
    query: str
    fraction: float
    count: float
    standard_error: float | None = None
    """Of the fraction, where it is known."""
    count_standard_error: float | None = None
    """Of the count, where it is known."""


class Event(Record):
    """Something that happened to a release: `kind` is `state` or `progress`."""

    id: int
    kind: str
    data: dict[str, Any]
