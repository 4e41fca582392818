"""The variance of answers from measured marginals or parts of them, in closed form.

The counts of a marginal A split into orthogonal parts, one for each subset B of A: sum over the columns
outside B, then subtract the mean along every column of B (synth/models/noisy_marginals.py). A share s of
the budget rho measures A with noise of variance D^2 / (2 rho s), and so part B with the precision
2 rho s / (D^2 cells(A - B)). Least squares adds the precisions of all measurements that contain a part.
The parts of a marginal are uncorrelated, so the variance of each of its cells is

    sum over B in A of prod over B of (1 - 1/size) / (cells(A - B)^2 precision of B).

A part that is measured itself (scrim/spec/workload/parts.py) is cells(B) times as large, so that a share s
measures it with the precision 2 rho s cells(B)^2 / D^2.

Precisions are stated for 2 rho = 1.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from scrim.spec.workload import Block

Names = tuple[str, ...]
Terms = list[tuple[int, float]]
"""Parts by position, each with a factor."""

MAX_PARTS = 200_000
"""Largest number of parts of marginals, counted marginal by marginal; more would take too long."""


@dataclass(frozen=True)
class Measurable:
    """A marginal, or the part of it over all its columns, and its squared L2 sensitivity."""

    names: Names
    l2_squared: int
    is_part: bool = False


@dataclass(frozen=True)
class Design:
    """How measurements determine answers."""

    measured: list[Terms]
    """The precision that one share of each measurement adds to parts."""
    asked: list[Terms]
    """The variance of a cell of each asked marginal: the sum of factor / precision."""
    known: list[float]
    """The precision of each part before anything is measured; infinite if the part is public."""

    @property
    def terms(self) -> int:
        """The number of steps of one evaluation."""
        return sum(map(len, self.measured)) + sum(map(len, self.asked))

    def precisions(self, shares: Sequence[float]) -> list[float]:
        """The precision of each part."""
        found = list(self.known)
        for share, terms in zip(shares, self.measured, strict=True):
            for part, factor in terms:
                found[part] += share * factor
        return found

    def variances(self, precisions: Sequence[float]) -> list[float]:
        """The variance of a cell of each asked marginal."""
        return [
            math.fsum(factor / precisions[part] for part, factor in terms) for terms in self.asked
        ]

    def beside(self, asked: Sequence[Block], measured: Mapping[Block, int]) -> "Design":
        """Return a design with further blocks, each of which is answered as it was measured.

        `measured` has the squared L2 sensitivity of each; what no unit can change has no noise.
        """
        first = len(self.known)
        place = {block: first + position for position, block in enumerate(measured)}
        return Design(
            [*self.measured, *([(place[b], 1 / d)] if d else [] for b, d in measured.items())],
            [*self.asked, *([(place[block], 1.0)] for block in asked)],
            [*self.known, *(0.0 if d else math.inf for d in measured.values())],
        )

    def loads(self, weights: Sequence[float]) -> list[float]:
        """For each part, the factor of 1 / precision in the weighted sum of all variances."""
        found = [0.0] * len(self.known)
        for weight, terms in zip(weights, self.asked, strict=True):
            for part, factor in terms:
                found[part] += weight * factor
        return found


def design_of(
    asked: Sequence[Names],
    measured: Sequence[Measurable],
    sizes: Mapping[str, int],
    *,
    rows: float,
    consistent: bool,
) -> Design:
    """Design answers by least squares or, if `consistent` is false or there are too many parts, as measured.

    `rows` is the precision of the number of rows. Least squares is never less precise.
    """
    parts = count_parts(asked) + count_parts([each.names for each in measured])
    if consistent and parts <= 2 * MAX_PARTS:
        return _by_least_squares(asked, measured, sizes, rows)
    return _as_measured(asked, measured, sizes)


def _by_least_squares(
    asked: Sequence[Names], measured: Sequence[Measurable], sizes: Mapping[str, int], rows: float
) -> Design:
    cells = _counter(sizes)
    parts: dict[Names, int] = {(): 0}
    answers = []
    for names in asked:
        whole, terms = cells(names), []
        for part in subsets(names):
            rest = whole // cells(part)
            centred = math.prod(1 - 1 / sizes[name] for name in part)
            if centred:  # a column of one value has nothing but its mean
                terms.append((parts.setdefault(part, len(parts)), centred / rest**2))
        answers.append(terms)
    added: list[Terms] = []
    for each in measured:
        whole = cells(each.names)
        # What no unit can change costs nothing: it is the number of rows, if that is public.
        if not each.l2_squared:
            added.append([])
        elif each.is_part:
            added.append([(parts[each.names], whole**2 / each.l2_squared)])
        else:
            scale = whole * each.l2_squared
            inside = (p for p in subsets(each.names) if p in parts)
            added.append([(parts[p], cells(p) / scale) for p in inside])
    return Design(added, answers, [rows, *[0.0] * (len(parts) - 1)])


def _as_measured(
    asked: Sequence[Names], measured: Sequence[Measurable], sizes: Mapping[str, int]
) -> Design:
    """Each answer is a sum over the smallest measured marginal that contains it."""
    cells = _counter(sizes)
    covering = _smallest_covers(asked, [each.names for each in measured], cells)
    answers = [
        [(position, float(cells(measured[position].names) // cells(names)))]
        for names, position in zip(asked, covering, strict=True)
    ]
    added = [
        [(position, 1 / each.l2_squared)] if each.l2_squared else []
        for position, each in enumerate(measured)
    ]
    return Design(added, answers, [0.0 if terms else math.inf for terms in added])


def _smallest_covers(
    asked: Sequence[Names], measured: Sequence[Names], cells: Callable[[Names], int]
) -> list[int]:
    position_of = {names: position for position, names in enumerate(measured)}
    ordered = sorted(position_of.values(), key=lambda position: cells(measured[position]))
    # One bit for each marginal, the smallest first: a marginal covers what shares its bit.
    holding: dict[str, int] = {}
    for bit, position in enumerate(ordered):
        for name in measured[position]:
            holding[name] = holding.get(name, 0) | 1 << bit
    found = []
    for names in asked:
        covering = (1 << len(ordered)) - 1
        for name in names:
            covering &= holding[name]
        smallest = (covering & -covering).bit_length() - 1
        found.append(position_of.get(names, ordered[smallest]))
    return found


def count_parts(marginals: Iterable[Names]) -> int:
    """The number of parts of all marginals, counted marginal by marginal."""
    return sum(2 ** len(names) for names in marginals)


def subsets(names: Names) -> list[Names]:
    """All subsets, in the order of the names; the empty one first."""
    return [part for k in range(len(names) + 1) for part in combinations(names, k)]


def _counter(sizes: Mapping[str, int]) -> Callable[[Names], int]:
    """Return a function that counts the cells of a marginal, each once."""
    found: dict[Names, int] = {}

    def cells(names: Names) -> int:
        if names not in found:
            found[names] = math.prod(map(sizes.__getitem__, names))
        return found[names]

    return cells
