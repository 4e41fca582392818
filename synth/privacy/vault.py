"""The door: the only object that holds the private rows.

Every operation follows the same path (`_perform`). In a resumed job it is answered from the journal;
otherwise it is priced, charged, computed, committed, and only then returned.
"""

import hashlib
import math
from collections import Counter, deque
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scrim.spec.population import Protection
from synth.door import Certified, CertifiedErrors, MixtureError, RowCount, TotalError
from synth.journal import Journal, JournalMismatch, Operation
from synth.measurements import Measurement
from synth.models.support import Support
from synth.privacy import noise
from synth.privacy.accountant import Accountant, NotPlanned
from synth.privacy.mixture import GAP, best_mixture_error
from synth.privacy.noise import FIXED_POINT
from synth.queries import QueryBlock, QuerySet, Single
from synth.table import Table

Counts = NDArray[np.int64]
Score = Callable[[Counts], Counts]
"""Scores of candidates, from the errors of all queries."""


class Vault:
    """Holds the rows of one job and releases only what was paid for and committed."""

    def __init__(
        self,
        table: Table,
        *,
        protection: Protection,
        budget: int,
        journal: Journal,
        planned: Counter[tuple[str, float]] | None = None,
    ) -> None:
        self.protection = protection
        self._table = table
        self._journal = journal
        self._recorded = deque(journal.operations())
        spent = sum(operation.price for operation in self._recorded)
        self._accountant = Accountant(budget, spent=spent, planned=planned)
        try:
            for operation in self._recorded:
                self._follow_plan(operation.kind, operation.scale, operation.price)
        except NotPlanned as unknown:
            raise JournalMismatch(f"the journal belongs to another plan: {unknown}") from None
        self._true_counts: dict[QueryBlock, Counts] = {}
        self.used = 0
        self.measurements: list[Measurement] = []

    @property
    def spent(self) -> int:
        """Units spent so far, by this run and by the runs that it resumes."""
        return self._accountant.spent

    def count_rows(self, *, budget: int) -> RowCount:
        """The number of rows: its sensitivity is 0 (public) or the rows that a unit may own."""
        sampler = noise.gaussian(self.protection.row_count_sensitivity**2, budget=budget)
        done = self._perform("rows", "", sampler, self._true_row_count)
        return RowCount(max(1, int(done.values[0])), done.scale)

    def measure(self, query: QueryBlock | Single, *, budget: int) -> Measurement:
        """Counts of a block, or of one query, with discrete Gaussian noise."""
        sampler = noise.gaussian(query.sensitivity(self.protection).l2_squared, budget=budget)
        done = self._perform("measure", query.name, sampler, lambda: self._true(query))
        self.measurements.append(Measurement(query, done.values, done.scale))
        return self.measurements[-1]

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
        """The exponential mechanism on absolute errors against `expected`, in integers."""
        starts = queries.candidates(among)
        if score is None:
            moved, score_of = self._largest_error(queries, starts)
        else:
            moved, score_of = self._total_error(queries, starts, among, score)

        def true_scores() -> Counts:
            return score_of(np.abs(self._true_all(queries) * FIXED_POINT - fixed_point(expected)))

        sampler = noise.noisy_top(moved * FIXED_POINT, k, budget=budget)
        asked = f"{k} of {len(starts)} {among}" + (" by total error" if score else "")
        return [int(i) for i in self._perform("select", asked, sampler, true_scores).values]

    def _largest_error(self, queries: QuerySet, starts: Counts) -> tuple[int, Score]:
        """Scores in units of sensitivity; a block's largest error has the sensitivity of one query.

        If the sensitivities of blocks differ, scores are divided by them (docs/privacy.md, section 3), in
        integers.
        """
        linf = [block.sensitivity(self.protection).linf for block in queries.blocks]
        common = math.lcm(*(d for d in linf if d))  # 0: public counts, whose score is a constant
        factor = np.array([common // d if d else 1 for d in linf])

        sizes = np.diff(queries.offsets)

        def largest(true_errors: Counts) -> Counts:
            # No product beyond 2^62. A cap is 1-Lipschitz, so it keeps the sensitivity.
            capped = np.minimum(true_errors, np.repeat(2**62 // factor, sizes))
            return np.maximum.reduceat(capped * np.repeat(factor, sizes), starts, dtype=np.int64)

        return common, largest

    def _total_error(
        self,
        queries: QuerySet,
        starts: Counts,
        among: Literal["marginals", "queries"],
        score: TotalError,
    ) -> tuple[int, Score]:
        """Scores w (sum of errors - offset), whose sensitivity is w times the counts' L1 sensitivity."""
        l1 = [moved.l1 for moved in queries.sensitivities(among, self.protection)]
        # No product beyond 2^62. A cap is 1-Lipschitz, so it keeps the sensitivity.
        cap = 2**29 // int(np.abs(score.weights).max()) * 2**32
        offsets = np.clip(fixed_point(score.offsets), -cap, cap)

        def total(true_errors: Counts) -> Counts:
            return score.weights * (capped_sums(true_errors, starts, cap) - offsets)

        largest = max(abs(int(w)) * d for w, d in zip(score.weights, l1, strict=True))
        return max(1, largest), total

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
        """Draw from exp(rate * regret) after `past` rounds; q + size is the negation of q.

        docs/privacy.md, section 2, with both sides multiplied by rows * FIXED_POINT: the score is
        past * c_q - rows * (sum of past model answers), the Gumbel scale rows / rate.
        """
        linf = max(block.sensitivity(self.protection).linf for block in queries.blocks)

        def true_scores() -> Counts:
            # Capping is 1-Lipschitz, so it keeps the sensitivity where a product would overflow.
            counts = np.minimum(self._true_all(queries), 2**41 // max(1, past))
            regret = past * counts * FIXED_POINT - fixed_point(rows * past_answers)
            return np.concatenate([regret, -regret])

        sampler = noise.gumbel_draws(past * linf * FIXED_POINT, rows * FIXED_POINT / rate, draws)
        asked = f"{draws} of {2 * queries.size} critics"
        return [int(i) for i in self._perform("hedge", asked, sampler, true_scores).values]

    def certify(
        self,
        queries: QuerySet,
        released: Counts,
        *,
        released_rows: int,
        rows: int,
        budget: int,
        certified: Certified = "largest error",
    ) -> CertifiedErrors:
        """Of all |N c_q - n_hat c^_q|, which change by N if c_q changes by one: the largest, or sums."""
        found = [block.sensitivity(self.protection) for block in queries.blocks]
        moved, starts = {
            "largest error": ([max(each.linf for each in found)], queries.offsets[:1]),
            "total error": ([sum(each.l1 for each in found)], queries.offsets[:1]),
            "total errors": ([each.l1 for each in found], queries.offsets[:-1]),
        }[certified]

        def true_errors() -> Counts:
            # No product beyond 2^62. A cap is 1-Lipschitz, so it keeps the sensitivity.
            counts = np.minimum(self._true_all(queries), 2**62 // released_rows)
            answers = np.minimum(released, 2**62 // rows)
            errors = np.abs(released_rows * counts - rows * answers)
            if certified == "largest error":
                return np.array([errors.max()])
            return capped_sums(errors, starts, 2**62)

        sampler = noise.gaussian(sum((released_rows * each) ** 2 for each in moved), budget=budget)
        # The bound holds only for these answers: a resumed job that drew other rows must not use it.
        digest = hashlib.sha256(released.astype("<i8").tobytes()).hexdigest()
        asked = f"{certified} of {queries.size} queries answered as {digest}"
        done = self._perform("certify", asked, sampler, true_errors)
        return CertifiedErrors(tuple(map(int, done.values)), done.scale)

    def best_mixture(
        self,
        queries: QuerySet,
        support: Support,
        *,
        rows: int,
        budget: int,
        check: Callable[[], None] = lambda: None,
    ) -> MixtureError:
        """min over weights w on public rows of max |c_q - q(w)|, found to within GAP.

        The exact minimum changes by one for each changed row. The value found is less than GAP below it
        on either of two neighbours, so it changes by at most GAP more (docs/privacy.md, section 5).
        """
        linf = max(block.sensitivity(self.protection).linf for block in queries.blocks)

        def true_error() -> Counts:
            true_counts = self._true_all(queries)
            return np.array([best_mixture_error(true_counts, queries, support, rows, check)])

        sampler = noise.gaussian((linf * FIXED_POINT + GAP) ** 2, budget=budget)
        asked = f"{queries.size} queries on {len(support.weights)} public rows"
        done = self._perform("best_mixture", asked, sampler, true_error)
        return MixtureError(int(done.values[0]) / FIXED_POINT, done.scale / FIXED_POINT)

    def close(self) -> None:
        """Refuse a journal with operations left over: it belongs to another release."""
        if self._recorded:
            raise JournalMismatch(f"the journal holds {len(self._recorded)} more operations")

    def _perform(
        self, kind: str, asked: str, sampler: noise.Sampler, true_values: Callable[[], Counts]
    ) -> Operation:
        """Replay from the journal; otherwise charge, compute, commit, and only then return."""
        if self._recorded:
            done = self._recorded.popleft()
            if (done.kind, done.asked) != (kind, asked):
                raise JournalMismatch(
                    f"the journal holds {done.kind} {done.asked}, not {kind} {asked}"
                )
        else:
            self._follow_plan(kind, sampler.scale, sampler.price)
            self._accountant.charge(sampler.price)
            outcome = sampler.release(true_values())
            done = Operation(kind, asked, sampler.scale, sampler.price, outcome)
            self._journal.commit(done)
        self.used += done.price
        return done

    def _follow_plan(self, kind: str, scale: float, price: int) -> None:
        if price:  # what no unit can change is public, in every plan
            self._accountant.follow_plan(kind, scale)

    def _true_row_count(self) -> Counts:
        chunks = self._table.chunks()
        return np.array([sum(len(next(iter(chunk.values()))) for chunk in chunks)])

    def _true(self, query: QueryBlock | Single) -> Counts:
        if isinstance(query, Single):
            return self._true(query.block)[[query.index]]
        return self._true_all(QuerySet([query]))

    def _true_all(self, queries: QuerySet) -> Counts:
        """True counts, cached for later rounds: one pass over the rows per new block."""
        missing = [block for block in queries.blocks if block not in self._true_counts]
        if missing:
            counted = QuerySet(missing)
            self._true_counts.update(
                zip(missing, counted.split(counted.count(self._table)), strict=True)
            )
        return np.concatenate([self._true_counts[block] for block in queries.blocks])


def fixed_point(counts: NDArray[np.float64]) -> Counts:
    """Public expected counts as integer multiples of 1/FIXED_POINT, clipped far below overflow."""
    bounded = np.clip(np.nan_to_num(counts), -(2.0**40), 2.0**40)
    return np.rint(bounded * FIXED_POINT).astype(np.int64)


def capped_sums(errors: Counts, starts: Counts, cap: int) -> Counts:
    """The sum from each start to the next, limited to `cap`, which is a multiple of 2^32.

    The low and high halves are summed separately, so neither sum can overflow.
    """
    low = np.add.reduceat(errors & 0xFFFFFFFF, starts)
    high = np.add.reduceat(errors >> 32, starts) + (low >> 32)
    return np.where(high < cap >> 32, (high << 32) + (low & 0xFFFFFFFF), cap)
