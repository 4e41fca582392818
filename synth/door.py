"""The interface of the private data for mechanisms: priced, noisy operations and their results."""

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
    """The number of rows, which all later steps use as a constant."""

    value: int
    sigma: float
    """Standard deviation of its noise; 0 if the number is public."""


Certified = Literal["largest error", "total error", "total errors"]
"""Of the errors of released rows: the largest, their sum, or their sum in each block."""


@dataclass(frozen=True)
class CertifiedErrors:
    """Noisy errors of released rows; the error of a query is |N c - n_hat c^|."""

    values: tuple[int, ...]
    sigma: float


@dataclass(frozen=True)
class MixtureError:
    """A noisy best-mixture error: the error of the best weights on public rows, in rows."""

    value: float
    sigma: float


@dataclass(frozen=True)
class TotalError:
    """Scores of candidates: weight times (sum of absolute errors minus offset)."""

    weights: NDArray[np.int64]
    """A public integer for each candidate, at least one."""
    offsets: NDArray[np.float64]
    """A public number of rows for each candidate, such as the expected total noise of measuring it."""


class Door(Protocol):
    """Priced operations on the private rows. Budgets are integer units of 1e-12 rho.

    Each operation is committed to a journal before its outcome is returned, and answered from the
    journal when a job is resumed. Candidates must depend only on the specification and on earlier
    outcomes, so that a recorded choice means the same when it is replayed.
    """

    @property
    def protection(self) -> Protection:
        """The privacy unit and relation that every price refers to."""

    @property
    def spent(self) -> int:
        """Units spent so far, by this run and by the runs that it resumes."""

    @property
    def used(self) -> int:
        """Cost of the operations so far in this run; less than `spent` while a journal is replayed."""

    def count_rows(self, *, budget: int) -> RowCount:
        """The number of rows, at least one: exact if it is public, otherwise noisy."""

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
        """Select k blocks, or single queries, whose true counts are approximately farthest from `expected`.

        Without a score, by their largest error in units of its sensitivity.
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
        """Draws of the query player of the release game; q + size means the negation of q."""

    def certify(
        self,
        queries: QuerySet,
        released: NDArray[np.int64],
        *,
        released_rows: int,
        rows: int,
        budget: int,
        certified: Certified = "largest error",
    ) -> CertifiedErrors:
        """The largest error of released rows, their total, or their total in each block, with noise."""

    def best_mixture(
        self,
        queries: QuerySet,
        support: Support,
        *,
        rows: int,
        budget: int,
        check: Callable[[], None] = lambda: None,
    ) -> MixtureError:
        """The smallest maximum error that weights on public rows can have, with noise.

        `check` is called periodically and stops the search by raising.
        """
