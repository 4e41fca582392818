"""Drawing rows from a junction tree with little sampling error in the tables of its cliques.

The first clique is drawn systematically: each cell gets its share to within one row. Every other
clique adds its new attributes to rows that already have its separator: the rows are sorted by the
separator, and the new attributes are drawn given the separator, at points that are spread evenly
over any run of rows (a golden-ratio sequence). So each cell of the clique, and each sum of cells with
consecutive separators, gets its share to within about one row.
"""

import math

import numpy as np
from numpy.typing import NDArray

from synth.graphical.propagation import Beliefs
from synth.models.sampling import draw_systematically

GOLDEN = (math.sqrt(5) - 1) / 2

Codes = dict[str, NDArray[np.int64]]


def draw_rows(beliefs: Beliefs, rows: int, rng: np.random.Generator) -> Codes:
    """Draw the codes of all attributes for `rows` rows, in random order."""
    tree = beliefs.tree
    root = beliefs.tables[0].numpy()
    cells = draw_systematically(root.ravel(), rows, rng)
    codes: Codes = dict(zip(tree.cliques[0], np.unravel_index(cells, root.shape), strict=True))
    for clique, kept, table in zip(
        tree.cliques[1:], tree.separators, beliefs.tables[1:], strict=True
    ):
        new = tuple(name for name in clique if name not in kept)
        order = [clique.index(name) for name in (*kept, *new)]
        shares = table.permute(order).reshape(-1, math.prod(tree.shape(new))).numpy()
        given = np.zeros(rows, np.int64)
        for name in kept:
            given = given * tree.domain.size_of[name] + codes[name]
        drawn = _draw_given(shares, given, rng)
        codes |= dict(zip(new, np.unravel_index(drawn, tree.shape(new)), strict=True))
    return codes


def _draw_given(
    shares: NDArray[np.float64], given: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a column of `shares` for each row, from the distribution in line `given` of that row."""
    lines, line = np.unique(given, return_inverse=True)
    cumulative = shares[lines].cumsum(axis=1)
    cumulative /= cumulative[:, -1:]
    # Rows with the same separator are in random order, so that their codes depend on nothing else.
    order = np.argsort(line + rng.random(len(line)))
    points = np.empty(len(line))
    points[order] = (np.arange(len(line)) * GOLDEN + rng.random()) % 1
    # Line k is shifted to [k, k + 1], so that one search finds all points.
    edges = (np.arange(len(lines))[:, None] + cumulative).ravel()
    found = np.searchsorted(edges, line + points, side="right") - line * shares.shape[1]
    codes: NDArray[np.int64] = np.minimum(found, shares.shape[1] - 1)
    return codes
