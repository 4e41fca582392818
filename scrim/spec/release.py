"""A release request: the workload, the mechanism, the budget and the outputs."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.base import Name, Spec
from scrim.spec.budget import Budget
from scrim.spec.mechanism import AskedMechanism, Mechanism
from scrim.spec.schema import MAX_COLUMNS
from scrim.spec.two_level import LevelTable
from scrim.spec.workload import Workload

MAX_ROWS = 100_000_000
"""Largest number of synthetic rows; it bounds the files of a release."""
DEFAULT_ROWS = 10_000
"""Number of synthetic rows if a release names none."""
MAX_DRAWS = 20
"""Largest number of further sets of rows; each takes about as long as the release."""


ColumnNames = Annotated[
    list[Name],
    Field(min_length=1, max_length=MAX_COLUMNS, json_schema_extra={"uniqueItems": True}),
]
"""Columns, each once."""


class Certify(Spec):
    """Spend budget on a bound on the largest error of the released rows."""

    share: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """Share of the release's budget to spend on it."""
    confidence: Annotated[float, Field(ge=0.5, le=0.999999)] = 0.95
    """Probability with which the bound holds."""


class Outputs(Spec):
    """The contents of the release."""

    rows: Annotated[int, Field(ge=1, le=MAX_ROWS)] | None = None
    """Number of synthetic rows (groups, for two-level data). It is declared, never taken from the data.
    Default: 10,000. Leave it out for a mechanism that releases answers only."""
    formats: Annotated[
        list[Literal["csv", "parquet"]],
        Field(min_length=1, max_length=2, json_schema_extra={"uniqueItems": True}),
    ] = ["csv"]
    """File formats of the synthetic rows and the answers."""
    answers: bool = True
    """Whether to release the workload's answers in addition to the rows."""
    certify: Certify | None = None
    """If given, measure the largest error of the released rows."""
    columns: ColumnNames | None = Field(
        # Left out of stored requests without it: they and their hashes are older than this field.
        default=None,
        exclude_if=lambda columns: columns is None,
    )
    """Columns to release in addition to those that the workload asks about. Their one-way marginals are
    measured. A release contains no other columns."""
    # Left out of stored requests without it, as `columns` is.
    draws: Annotated[int, Field(ge=1, le=MAX_DRAWS, exclude_if=lambda draws: draws == 1)] = 1
    """If more than one, the number of further sets of rows (`synthetic_1.csv`, `synthetic_2.csv`, ...). Each
    is drawn from a model of its own, fitted to simulated measurements, so that their differences show the
    error caused by the privacy noise. They cost no budget; each takes about as long as the release itself."""

    @model_validator(mode="after")
    def _formats_once(self) -> Self:
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("formats lists the same format twice")
        return self

    @model_validator(mode="after")
    def _columns_once(self) -> Self:
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            raise ValueError("columns lists the same column twice")
        return self


class AskedRelease(Spec):
    """A requested release; its mechanism may be `auto` (scrim/spec/choice.py)."""

    workload: Workload
    """The queries to answer."""
    mechanism: AskedMechanism
    """How it is computed, with the mechanism's parameters."""
    budget: Budget
    """The privacy budget to spend."""
    outputs: Outputs = Outputs()
    """What the release contains."""
    table: LevelTable | None = None
    """For a dataset of groups and individuals: the one table to release. If not given, both linked tables
    are released, which needs a mechanism for two levels."""
    expected_rows: Annotated[int, Field(ge=1, le=10**12)] = 50_000
    """Approximate number of rows of the private table, as an order of magnitude that may be public. It only
    affects the mechanism's own choices, such as what to measure."""
    bins_share: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        # Left out of stored requests without it: they and their hashes are older than this field.
        default=None,
        exclude_if=lambda share: share is None,
    )
    """Share of the budget that places the edges of adaptive bins. Default: 0.01 for each released column with
    adaptive bins, at most 0.1."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.mechanism.releases_rows:
            if self.outputs.rows is not None:
                raise ValueError(
                    f"{self.mechanism.name} releases answers only; leave outputs.rows out"
                )
            if self.outputs.certify is not None:
                raise ValueError(
                    f"{self.mechanism.name} releases no rows to certify; leave outputs.certify out"
                )
            if self.outputs.draws > 1:
                raise ValueError(
                    f"{self.mechanism.name} releases no rows to draw again; leave outputs.draws out. Its "
                    "answers have exact standard errors"
                )
            if not self.outputs.answers:
                raise ValueError(
                    f"{self.mechanism.name} releases answers only; set outputs.answers"
                )
        return self

    @property
    def redraws(self) -> int:
        """The number of sets of rows beside `synthetic.csv`."""
        return self.outputs.draws if self.outputs.draws > 1 else 0

    @property
    def synthetic_rows(self) -> int | None:
        """The number of released synthetic rows; None for a mechanism that releases answers only."""
        return (self.outputs.rows or DEFAULT_ROWS) if self.mechanism.releases_rows else None


class ReleaseSpec(AskedRelease):
    """Everything that determines what a release computes."""

    mechanism: Mechanism
    """How it is computed, with the mechanism's parameters."""


class ReleaseRequest(AskedRelease):
    """The body of a release request: the release, and the datasets it uses."""

    dataset_id: Annotated[str, Field(min_length=1, max_length=100)]
    """The private dataset."""
    public_dataset_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """A public dataset, for mechanisms that use one and for `auto`, which may use it."""
    publish: bool = False
    """Make the release visible to analysts as soon as it is finished."""
    dry_run: bool = False
    """Run the whole job on rows drawn only from the declared schema, without reading data or spending
    budget."""

    @model_validator(mode="after")
    def _public_data_is_used(self) -> Self:
        if self.public_dataset_id is not None and not self.mechanism.takes_public_data:
            raise ValueError(
                f"{self.mechanism.name} uses no public data; leave public_dataset_id out"
            )
        return self
