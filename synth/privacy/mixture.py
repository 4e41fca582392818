"""Best mixture: the smallest error with which weights on public rows can answer all queries.

    opt  =  min over weights w >= 0 on the rows, sum w = n,  of  max over queries q of |c_q - q(w)|

This is a linear program (Liu et al. 2021, Leveraging Public Data, definition 4.1, in counts). The search
keeps two bounds, which hold for any w, however it was found, and any signed y with |y|_1 <= 1:

    y c - n max over rows x of y(x)   <=   opt   <=   max over q of |c_q - q(w)|,

where y(x) is the sum of y_q over the queries that row x satisfies. Both are computed in integers, and
the loop ends only when they are less than GAP apart. So the result is within GAP of opt for every
table, and opt changes by no more than the counts do (docs/privacy.md, section 5).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, vstack

from synth.models.entropy_projection import project_onto
from synth.models.support import Support
from synth.privacy.noise import FIXED_POINT
from synth.queries import Marginal, QuerySet

GAP = FIXED_POINT // 8
"""The loop ends when the bounds are less than this apart, in units of 1/FIXED_POINT of a row."""
WHOLE_SHARE = 2**50
"""The entries of y are integer multiples of 1/WHOLE_SHARE."""
SWEEPS = 20
"""Number of passes over all marginals in one round of projections."""
ROUNDS = 20
"""Number of rounds of projections before each linear program."""
CUTS = 300
"""Number of violated queries added to the linear program at once."""

Counts = NDArray[np.int64]
Reals = NDArray[np.float64]


def best_mixture_error(
    true_counts: Counts,
    queries: QuerySet,
    support: Support,
    rows: int,
    check: Callable[[], None] = lambda: None,
) -> int:
    """Return the final lower bound on opt, in units of 1/FIXED_POINT of a row.

    `check` is called periodically and stops the search by raising.
    """
    search = Search(true_counts, queries, support, rows, check)
    while search.is_open:
        search.project()
        if search.is_open and not search.solve():
            # Slower, but guaranteed to converge: the loop ends even if the solver always fails.
            search.play()
    return search.lower


class Search:
    """The best bounds so far, and three ways to improve them."""

    def __init__(
        self,
        true_counts: Counts,
        queries: QuerySet,
        support: Support,
        rows: int,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._true = true_counts
        self._queries = queries
        self._support = replace(support, weights=support.weights.clone())
        self._rows = rows
        self._check = check
        self._cuts: list[int] = []
        self._matching = csr_array((0, len(support.weights)), dtype=np.int64)
        self._steps = 1000
        self.lower = self._lower_from_single_queries()
        self.upper = self._largest(self._errors(support.weights.numpy()))

    @property
    def is_open(self) -> bool:
        """Whether the bounds are still too far apart."""
        return self.upper - self.lower >= GAP

    def project(self) -> None:
        """Entropy projections onto |c_q - q(w)| <= level, for a level above the lower bound.

        They converge fast if such weights exist with slack. Usually they do: the lower bound is the
        largest true count in a cell without public rows, which leaves slack for all other cells.
        """
        marginals = [
            (block.attributes, torch.from_numpy(counts / self._rows))
            for block, counts in zip(
                self._queries.blocks, self._queries.split(self._true), strict=True
            )
            if isinstance(block, Marginal)
        ]
        for _ in range(ROUNDS):
            before = self.upper
            level = self.lower + max(GAP, (before - self.lower) // 4) // 2
            margin = torch.tensor(level / FIXED_POINT / self._rows, dtype=torch.float64)
            for _ in range(SWEEPS):
                for attributes, values in marginals:
                    self._check()
                    project_onto(self._support, attributes, values, margin)
            self._offer_weights(self._support.weights.numpy())
            if not self.is_open or before - self.upper < (before - self.lower) // 8:
                return

    def solve(self) -> bool:
        """Solve the linear program over the most violated queries; return whether anything changed."""
        self._cut(self._errors(self._support.weights.numpy()))
        chosen, counts = self._matching, self._true[self._cuts].astype(np.float64)
        size = chosen.shape[1]
        error = csr_array(np.ones((len(counts), 1)))
        solved = linprog(
            np.append(np.zeros(size), 1.0),
            A_ub=vstack([hstack([-chosen, -error]), hstack([chosen, -error])], format="csc"),
            b_ub=np.concatenate([-counts, counts]),
            A_eq=np.append(np.ones(size), 0.0)[None, :],
            b_eq=[self._rows],
            method="highs",
        )
        if solved.status != 0:
            return False
        lower, upper, cuts = self.lower, self.upper, len(self._cuts)
        above, below = np.split(-solved.ineqlin.marginals, 2)
        self._offer_shares(above - below)
        self._cut(self._offer_weights(np.maximum(solved.x[:size], 0)))
        return (self.lower, self.upper, len(self._cuts)) != (lower, upper, cuts)

    def play(self) -> None:
        """Play exponential weights on the rows against the worst query of every step.

        After T steps the averages of both players are bounds at most n sqrt(2 ln(m) / T) apart, for
        m rows (Freund and Schapire 1999), and T doubles from call to call.
        """
        size = len(self._support.weights)
        rate = np.sqrt(2 * np.log(max(2, size)) / self._steps)
        gains, total = np.zeros(size), np.zeros(size)
        played: dict[int, int] = {}
        for _ in range(self._steps):
            self._check()
            weights = np.exp(rate * (gains - gains.max()))
            total += weights / weights.sum()
            errors = self._errors(weights)
            worst = int(np.abs(errors).argmax())
            sign = int(np.sign(errors[worst]))
            gains[self._rows_matching(worst)] += sign
            played[worst] = played.get(worst, 0) + sign
        self._add_cuts(sorted(played.keys() - set(self._cuts)))
        self._offer_shares(np.array([played.get(query, 0) for query in self._cuts]))
        self._offer_weights(total)
        self._steps *= 2

    def _lower_from_single_queries(self) -> int:
        """The lower bound from y = +-1 on one query that no row, or every row, satisfies."""
        size = len(self._support.weights)
        one_each = replace(self._support, weights=torch.ones(size, dtype=torch.int64))
        satisfied = self._queries.on_support(one_each).numpy()
        never = self._true[satisfied == 0]
        always = np.abs(self._rows - self._true[satisfied == size])
        return FIXED_POINT * max(int(never.max(initial=0)), int(always.max(initial=0)))

    def _offer_shares(self, shares: Reals) -> None:
        """Update the lower bound from some y, in integers that are rounded so that |y|_1 <= 1."""
        norm = np.abs(shares).sum()
        if not 0 < norm < np.inf:
            return
        whole = np.trunc(shares * (WHOLE_SHARE * (1 - 2.0**-30) / norm)).astype(np.int64)
        value = sum(int(y) * int(c) for y, c in zip(whole, self._true[self._cuts], strict=True))
        gain = int((self._matching.T @ whole).max())
        self.lower = max(self.lower, FIXED_POINT * (value - self._rows * gain) // WHOLE_SHARE)

    def _offer_weights(self, weights: Reals) -> Counts:
        """Update the upper bound from some w; return its errors."""
        errors = self._errors(weights)
        self.upper = min(self.upper, self._largest(errors))
        return errors

    def _errors(self, weights: Reals) -> Counts:
        """c_q - q(w) in units of 1/FIXED_POINT, for w rounded to integer units that sum to n."""
        if not (0 < weights.sum() < np.inf and weights.min() >= 0):
            weights = np.ones_like(weights)  # replace a proposal that is not a distribution
        total = self._rows * FIXED_POINT
        whole = np.floor(weights * (total / weights.sum())).astype(np.int64)
        whole[whole.argmax()] += total - whole.sum()
        rounded = replace(self._support, weights=torch.from_numpy(whole))
        errors: Counts = self._true * FIXED_POINT - self._queries.on_support(rounded).numpy()
        return errors

    def _cut(self, errors: Counts) -> None:
        """Add the queries with the largest errors to the linear program."""
        sizes = np.abs(errors)
        sizes[self._cuts] = -1
        worst = np.argsort(-sizes, kind="stable")[:CUTS]
        self._add_cuts([int(query) for query in worst if sizes[query] >= 0])

    def _add_cuts(self, queries: list[int]) -> None:
        rows = [self._rows_matching(query) for query in queries]
        ends = np.cumsum([0, *map(len, rows)])
        added = csr_array(
            (
                np.ones(ends[-1], dtype=np.int64),
                np.concatenate([np.zeros(0, np.int64), *rows]),
                ends,
            ),
            shape=(len(queries), self._matching.shape[1]),
        )
        self._matching = csr_array(vstack([self._matching, added]))
        self._cuts += queries

    def _rows_matching(self, query: int) -> Counts:
        block, position = self._queries.locate(query)
        matching: Counts = self._queries.blocks[block].matching(position, self._support).numpy()
        return matching

    @staticmethod
    def _largest(errors: Counts) -> int:
        return int(np.abs(errors).max())
