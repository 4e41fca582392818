"""What a mechanism is given."""

from collections.abc import Callable
from dataclasses import dataclass

from synth.domain import Domain
from synth.door import Door
from synth.queries import QuerySet


@dataclass(frozen=True)
class Job:
    """One run of a mechanism."""

    door: Door
    domain: Domain
    queries: QuerySet
    """What is asked."""
    candidates: QuerySet
    """What may be measured."""
    rows: int
    """The number of rows: public, or measured with noise."""
    rows_sigma: float
    """Standard deviation of that number; 0 where it is public."""
    budget: int
    """Units of 1e-12 rho the mechanism may spend."""
    progress: Callable[[int, int], None]
    """Told how many rounds of how many are done."""
