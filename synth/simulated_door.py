"""A door without rows: it replays a finished journal, with new counts that are simulated.

It shows a mechanism what it might have measured if the released model were the truth: each measured count
is the model's count plus normal noise of the recorded scale, rounded. Selections, prices and public counts
are those of the journal. Everything in it is released, so a fit through this door is post-processing
(docs/privacy.md, section 2.10). The noise protects no one; it only has the distribution that the privacy
noise had.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from scrim.spec.population import Protection
from synth.door import Certified, CertifiedErrors, MixtureError, RowCount, TotalError
from synth.journal import JournalMismatch, Operation
from synth.measurements import Measurement
from synth.models.support import Support
from synth.queries import QueryBlock, QuerySet, Single

REPLAYED = ("rows", "select", "measure")
"""The operations of a fit. Screens and certificates are about the release, so they are left out."""


class SimulatedDoor:
    """Answers a mechanism as the released model would, with simulated noise."""

    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        protection: Protection,
        rows: int,
        counts: Sequence[NDArray[np.float64]],
        random: np.random.Generator,
    ) -> None:
        """`rows` and `counts` are the model's: its number of rows, and its counts for each measurement."""
        self.protection = protection
        self.spent = sum(operation.price for operation in operations)
        self.used = 0
        self._recorded = deque(each for each in operations if each.kind in REPLAYED)
        self._rows = rows
        self._counts = deque(counts)
        self._random = random

    def count_rows(self, *, budget: int) -> RowCount:
        """The model's number of rows, with noise if it was measured with noise."""
        done = self._next("rows")
        return RowCount(max(1, int(self._noisy(done, np.array([self._rows]))[0])), done.scale)

    def measure(self, query: QueryBlock | Single, *, budget: int) -> Measurement:
        """The model's counts with noise."""
        done = self._next("measure")
        if done.asked != query.name:
            raise JournalMismatch(f"the journal holds measure {done.asked}, not {query.name}")
        return Measurement(query, self._noisy(done, self._counts.popleft()), done.scale)

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
        """The recorded selection."""
        return [int(index) for index in self._next("select").values]

    def hedge_draw(
        self,
        queries: QuerySet,
        past_answers: NDArray[np.float64],
        *,
        rows: int,
        rate: float,
        past: int,
        draws: int,
    ) -> NoReturn:
        """Refuse: without counts there is nothing to simulate. Plans refuse such releases before."""
        raise JournalMismatch("a release that draws queries has no measured counts to simulate")

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
        """Refuse: only released rows are certified."""
        raise JournalMismatch("only rows of the private table's own model are certified")

    def best_mixture(
        self,
        queries: QuerySet,
        support: Support,
        *,
        rows: int,
        budget: int,
        check: Callable[[], None] = lambda: None,
    ) -> MixtureError:
        """Refuse: public data are screened once."""
        raise JournalMismatch("public data are screened before the first fit alone")

    def close(self) -> None:
        """Refuse a replay that left operations over: it was of another release."""
        if self._recorded:
            raise JournalMismatch(f"the journal holds {len(self._recorded)} more operations")

    def _next(self, kind: str) -> Operation:
        if not self._recorded or self._recorded[0].kind != kind:
            held = self._recorded[0].kind if self._recorded else "nothing more"
            raise JournalMismatch(f"the journal holds {held}, not {kind}")
        done = self._recorded.popleft()
        self.used += done.price
        return done

    def _noisy(self, done: Operation, counts: NDArray[np.float64]) -> NDArray[np.int64]:
        """Counts with the noise that the operation had; public counts are the recorded ones."""
        if not done.scale:
            return done.values
        return np.rint(self._random.normal(counts, done.scale)).astype(np.int64)
