"""What a report shows about a release besides its content."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from scrim.spec.choice import MechanismChoice
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from worker.report.balance import Balance


@dataclass(frozen=True)
class ReleasedFile:
    """A file of the release."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class About:
    """Names, population, budget and files. Nothing in it depends on when or how often a job ran."""

    release_id: str
    dataset: str
    population: str
    asked_on: date
    spec: ReleaseSpec
    protection: Protection
    delta: float
    files: Sequence[ReleasedFile]
    balance: Balance | None
    """The population's account before the day of the release; None for a dry run."""
    declared: Schema | None = None
    """The declared schema, if the dataset has columns that are not released."""
    provenance: str | None = None
    """The declared source of the public data, if any was used."""
    choice: MechanismChoice | None = None
    """Why this mechanism was chosen, if `auto` was requested."""
    is_dry_run: bool = False
