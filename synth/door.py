"""What a mechanism sees of the private data: priced, noisy operations and what they return."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from scrim.spec.population import Protection
from synth.measurements import Measurement
from synth.models.support import Support
from synth.queries import QueryBlock, QuerySet, Single


@dataclass(frozen=True)
class RowCount:
    """The number of rows, used as a constant by everything that follows."""

    value: int
    sigma: float
    """Standard deviation of its noise; 0 where the number is public."""


@dataclass(frozen=True)
class CertifiedError:
    """A noisy maximum error of released rows."""

    value: int
    """max over queries of |N c - n_hat c^|, with noise."""
    sigma: float


@dataclass(frozen=True)
class MixtureError:
    """A noisy best-mixture error: what the best weights on public rows leave, in rows."""

    value: float
    sigma: float


@dataclass(frozen=True)
class TotalError:
    """A candidate's score: its weight times how far its absolute errors add up beyond an offset."""

    weights: NDArray[np.int64]
    """A public whole number for each candidate, at least one."""
    offsets: NDArray[np.float64]
    """A public number of rows for each candidate, such as what the noise of a measurement adds up to."""


class Door(Protocol):
    """Priced operations on the private rows. Budgets are whole units of 1e-12 rho.

    Each operation is committed to a journal before its outcome is returned, and answered from the
    journal when a job is resumed. Candidates must follow from the specification and from earlier
    outcomes alone, so that a recorded choice means the same when it is read again.
    """

    @property
    def protection(self) -> Protection:
        """The privacy unit and relation that every price refers to."""

    @property
    def spent(self) -> int:
        """Units spent so far, by this run and by those it resumes."""

    @property
    def used(self) -> int:
        """What the operations up to here cost: less than `spent` while a journal is read again."""

    def count_rows(self, *, budget: int) -> RowCount:
        """The number of rows, exact where it is public, noisy otherwise; at least one."""

    def measure(self, query: QueryBlock | Single, *, budget: int) -> Measurement:
        """Counts of a block, or of one query, with discrete Gaussian noise."""

    def select(
        self,
        queries: QuerySet,
        expected: NDArray[np.float64],
        *,
        budget: int,
        among: Literal["marginals", "queries"] = "marginals",
        k: int = 1,
        score: TotalError | None = None,
    ) -> list[int]:
        """The k blocks, or single queries, whose true counts are about farthest from `expected`.

        By their largest error in units of its sensitivity, where no score is given.
        """

    def hedge_draw(
        self,
        queries: QuerySet,
        past_answers: NDArray[np.float64],
        *,
        rows: int,
        rate: float,
        past: int,
        draws: int,
    ) -> list[int]:
        """Draws of the query player of the release game; q + size stands for the negation of q."""

    def certify(
        self,
        queries: QuerySet,
        released: NDArray[np.int64],
        *,
        released_rows: int,
        rows: int,
        budget: int,
    ) -> CertifiedError:
        """The largest error of released rows over all queries, with noise."""

    def best_mixture(
        self,
        queries: QuerySet,
        support: Support,
        *,
        rows: int,
        budget: int,
        check: Callable[[], None] = lambda: None,
    ) -> MixtureError:
        """The smallest largest error that any weights on public rows have, with noise.

        `check` is called now and then, and stops the search by raising.
        """
