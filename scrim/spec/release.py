"""A request for a release: what is asked, by which mechanism, for how much, and in which form."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.base import Spec
from scrim.spec.budget import Budget
from scrim.spec.mechanism import AskedMechanism, Mechanism
from scrim.spec.two_level import LevelTable
from scrim.spec.workload import Workload

MAX_ROWS = 100_000_000
DEFAULT_ROWS = 10_000


class Certify(Spec):
    """Pay for a bound on the largest error of the released rows."""

    share: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """Share of the release's budget that pays for it."""
    confidence: Annotated[float, Field(ge=0.5, le=0.999999)] = 0.95
    """Probability with which the bound holds."""


class Outputs(Spec):
    """What the release contains."""

    rows: Annotated[int, Field(ge=1, le=MAX_ROWS)] | None = None
    """Number of synthetic rows (groups, for two-level data). Declared, never taken from the data;
    10,000 where not given. A mechanism that answers only takes none."""
    formats: Annotated[
        list[Literal["csv", "parquet"]],
        Field(min_length=1, max_length=2, json_schema_extra={"uniqueItems": True}),
    ] = ["csv"]
    """File formats of the synthetic rows and the answers."""
    answers: bool = True
    """Whether the workload's answers are released beside the rows."""
    certify: Certify | None = None
    """Whether to measure the largest error of the released rows, and for how much."""

    @model_validator(mode="after")
    def _formats_once(self) -> Self:
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("formats lists the same format twice")
        return self


class AskedRelease(Spec):
    """What is asked for; the mechanism may be left to choose (scrim/spec/choice.py)."""

    workload: Workload
    """What is asked."""
    mechanism: AskedMechanism
    """How it is computed, with the mechanism's parameters."""
    budget: Budget
    """What it may cost."""
    outputs: Outputs = Outputs()
    """What it contains."""
    table: LevelTable | None = None
    """Of a dataset of groups and individuals, the table that is released alone. Without it the release
    is about both, linked, which takes a mechanism for two levels."""
    expected_rows: Annotated[int, Field(ge=1, le=10**12)] = 50_000
    """About how many rows the private table has, as the curator may say it in public: an order of
    magnitude. It decides nothing but the mechanism's own choices, such as what is measured."""

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
            if not self.outputs.answers:
                raise ValueError(
                    f"{self.mechanism.name} releases answers only; set outputs.answers"
                )
        return self

    @property
    def synthetic_rows(self) -> int | None:
        """How many synthetic rows are released; none by a mechanism that answers only."""
        return (self.outputs.rows or DEFAULT_ROWS) if self.mechanism.releases_rows else None


class ReleaseSpec(AskedRelease):
    """Everything that decides what a release computes."""

    mechanism: Mechanism
    """How it is computed, with the mechanism's parameters."""


class ReleaseRequest(AskedRelease):
    """The body of a request for a release: what is asked for, and the data it is about."""

    dataset_id: Annotated[str, Field(min_length=1, max_length=100)]
    """The private dataset."""
    public_dataset_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """A public dataset that assists, for mechanisms that use one, and for `auto`, which may."""
    publish: bool = False
    """Make the release visible to analysts as soon as it is finished."""
    dry_run: bool = False
    """Run the whole job on rows drawn from the declared schema alone: no data, no budget."""

    @model_validator(mode="after")
    def _public_data_is_used(self) -> Self:
        if self.public_dataset_id is not None and not self.mechanism.takes_public_data:
            raise ValueError(
                f"{self.mechanism.name} uses no public data; leave public_dataset_id out"
            )
        return self
