"""Which marginals to measure for those that are asked, as many as a fit can take.

Nothing here depends on rows. A mixture fitted to the likelihood of noisy counts erred least, or within 10%
of it, if what is asked was measured itself (docs/defaults.md). So the asked marginals are measured, the
smallest first, and pairs in place of those that are too large: time and memory bound the number of counts,
and no single wide column decides about the others.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate, combinations

from scrim.spec.budget import rho_of_units
from scrim.spec.workload import Block, Blocks, MarginalBlock
from scrim.spec.workload.blocks import MAX_COMBINATIONS
from synth.planning.spending import Setting

MAX_COUNTS = 1_000_000
"""Largest number of counts that are measured once, beside single columns; more would take too long."""
MAX_MEASURED = 500_000
"""Largest number of counts of marginals of three columns or more among them, and of candidates of rounds."""
FAINT = 0.01
"""How many times its noise an average cell of the pairs must hold. On LOANS at epsilon 0.1, where it is about
0.02, measuring pairs as well costs 5% of the mean error of single columns alone."""

Sizes = dict[tuple[str, ...], int]
"""Marginals by their columns, with the number of cells."""


def as_asked(setting: Setting) -> list[Block]:
    """Single columns, the smallest asked marginals, and pairs in place of the rest; others as asked."""
    return [*map(MarginalBlock, _marginals(setting)), *setting.asked.others]


def _marginals(setting: Setting) -> list[tuple[str, ...]]:
    single = setting.asked.below(1).names
    if is_faint(setting):
        return single
    sizes = {block.attributes: block.size(setting.schema) for block in setting.asked.marginals}
    larger = smallest({names: size for names, size in sizes.items() if len(names) > 2})
    covered = {pair for names in larger for pair in combinations(names, 2)}
    pairs = pairs_below(setting.asked)
    rest = {names: size for names, size in pairs.items() if names not in covered}
    room = MAX_COUNTS - sum(sizes[names] for names in larger)
    return [*dict.fromkeys([*single, *larger, *smallest(rest, room)])]


def left_out(asked: Iterable[MarginalBlock], measured: Iterable[Block]) -> list[tuple[str, ...]]:
    """The pairs of columns that some asked marginal contains and no measured table does.

    Queries about parts of tables, such as ranges, say too little about any pair.
    """
    wanted = dict.fromkeys(p for block in asked for p in combinations(block.attributes, 2))
    tables = [block for block in measured if block.is_whole]
    known = {p for block in tables for p in combinations(block.attributes, 2)}
    return [pair for pair in wanted if pair not in known]


def smallest_pairs(setting: Setting) -> list[Block]:
    """The pairs in the asked marginals, the smallest first, as many as a fit can take.

    Single columns if only these are asked, or if pairs hold too little; other blocks as asked.
    """
    single = setting.asked.below(1).names
    names = single if is_faint(setting) else smallest(pairs_below(setting.asked))
    return [*map(MarginalBlock, names or single), *setting.asked.others]


def smallest_below(setting: Setting) -> list[Block]:
    """All marginals in the asked ones (their downward closure), the smallest first, as many as a
    fit can take; other blocks as asked. High orders are left out if there are too many.
    """
    highest = max((len(block.attributes) for block in setting.asked.marginals), default=0)
    below: Sizes = {}
    for order in range(1, highest + 1):
        further = setting.asked.below(order)
        if not further.names or len(below) + len(further.names) > MAX_COMBINATIONS:
            break
        below |= dict(zip(further.names, further.sizes, strict=True))
    return [*map(MarginalBlock, smallest(below)), *setting.asked.others]


def smallest(sizes: Sizes, most: int = MAX_MEASURED) -> list[tuple[str, ...]]:
    """The smallest marginals, up to that number of cells together."""
    ordered = sorted(sizes, key=sizes.__getitem__)
    kept = bisect_right(list(accumulate(map(sizes.__getitem__, ordered))), most)
    return ordered[:kept]


def pairs_below(asked: Blocks) -> Sizes:
    """All pairs of columns that some asked marginal contains, with their sizes; if only single columns
    are asked, these.
    """
    below = asked.below(2)
    sizes = dict(zip(below.names, below.sizes, strict=True))
    return {names: size for names, size in sizes.items() if len(names) == 2} or sizes


def visibility(setting: Setting) -> float | None:
    """How many times its noise an average cell of the pairs would hold, if the smallest pairs, up to
    MAX_MEASURED cells, were measured once; None if no marginals are asked.
    """
    pairs = pairs_below(setting.asked)
    kept = smallest(pairs) or list(pairs)[:1]
    if not kept:
        return None
    last = MarginalBlock(kept[-1])
    l2_squared = last.sensitivity(setting.schema, setting.protection).l2_squared
    sigma = math.sqrt(max(1, l2_squared) * len(kept) / (2 * rho_of_units(setting.units)))
    cells = sum(pairs[names] for names in kept) / len(kept)
    return setting.expected_rows / cells / sigma


def is_faint(setting: Setting) -> bool:
    """Whether pairs hold so little that single columns alone are worth measuring."""
    seen = visibility(setting)
    return seen is not None and seen < FAINT
