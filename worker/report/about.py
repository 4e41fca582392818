"""What a report says of a release beside what the release itself holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from scrim.spec.choice import MechanismChoice
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from worker.report.balance import Balance


@dataclass(frozen=True)
class ReleasedFile:
    """A file of the release."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class About:
    """Names, people, money and files. Nothing in it depends on when or how often a job ran."""

    release_id: str
    dataset: str
    population: str
    asked_on: date
    spec: ReleaseSpec
    protection: Protection
    delta: float
    files: Sequence[ReleasedFile]
    balance: Balance | None
    """The population's account before the day of the release; a dry run touches none."""
    provenance: str | None = None
    """Where the public data that assisted come from, if any did."""
    choice: MechanismChoice | None = None
    """Why it has that mechanism, where that was left to choose."""
    is_dry_run: bool = False
