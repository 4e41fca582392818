"""The peak memory of a release, for its fit and its outputs, from public numbers alone.

The limits are the ones that the fits obey. The numbers of simultaneous copies were measured
(tests/synth/planning/test_memory.py); they include gradients and the state of optimisers.
"""

import math
from collections.abc import Iterable, Sequence

from scrim.spec.schema import Schema
from scrim.spec.workload import Block

MAX_ENTRIES = 2**23
"""Largest table of joint probabilities held at once, in numbers of four bytes: 32 MiB."""
KEPT_TABLES = 16
"""If all tables together are larger than this many such tables, they are recomputed for the gradient."""
BLOCKS_PER_STEP = 96
"""Number of marginals in one step on public data; limits the memory and time of a step."""
KEPT_PLANS = 64
"""Number of sets of marginals for which the plan of a mixture's answers is cached."""
ELIMINATED_ENTRIES = 2**20
"""Largest intermediate table when a graphical model answers a query across its cliques: 8 MiB, or the
largest clique if that is larger. Larger tables are computed in slices. The cache for later queries has
the same limit."""
CACHED_BYTES = 2**28
"""Memory limit of the cached cell positions of weighted rows or of kinds of groups."""

DOUBLE = 8
SINGLE = 4
TABLE_COPIES = 14
"""Logits, their gradient and two moments, probabilities, and the gradients of each use of them."""
OUTPUT_COPIES = 12
"""The same for the output of a network, which has no moments."""
ACTIVATION_COPIES = 1.5
"""Activations are kept for the gradient; their gradients are freed layer by layer."""
SHARE_COPIES = 3
"""The shares of all codes and their running sums, in doubles, and a copy for answers."""
WEIGHT_COPIES = 4
"""Weights, their gradient and two moments."""
RECOMPUTED_TABLES = 4
"""A recomputed table, its gradient, and intermediate values."""
CLIQUE_COPIES = 4
"""The distributions of cliques, their terms, and their sums."""
FIT_STEPS = 40
"""Number of past steps that the fit of a graphical model stores."""
FIT_STEP_ENTRIES = 2**22
"""Largest number of entries of all stored steps: 32 MiB. If there are many measurements, fewer are stored."""
FIT_STEP_COPIES = 4
"""The moves and the changes of the gradient, for the last fit and for the current one."""
ELIMINATED_TABLES = 24
"""Intermediate tables of an answer across cliques, the cached ones, and their factors."""
ANSWER_COPIES = 2
"""The tables of answers, and all of them in one vector."""
BYTES_PER_QUERY = 44
"""Value, noise, place among all cells, answer, residual, and their gradients."""

DRAWN_CELL_BYTES = 16
"""The code of a drawn cell, and its value or a second copy of its code."""
LINKED_CELL_BYTES = 24
"""The same for linked groups: the codes of all places, those of occupied places, and their values."""
DRAWN_ROW_BYTES = 40
"""Memory of a drawn row besides its cells: its component, its place, its order, and two points."""
ANSWER_BYTES = 320
"""A released answer: its names, its figures, and their copy in a file."""


def queries_of(blocks: Iterable[Block], schema: Schema) -> int:
    """The total number of queries of the blocks."""
    return sum(block.size(schema) for block in blocks)


def histogram_bytes(blocks: Iterable[Block], schema: Schema, *, copies: int) -> int:
    """One weight for every combination of the blocks' attributes."""
    used = {name for block in blocks for name in block.attributes}
    return DOUBLE * copies * math.prod(schema.sizes[name] for name in used)


def joint_table_bytes(components: int, blocks: Iterable[Block], schema: Schema) -> int:
    """The tables whose products are a mixture's answers to larger marginals, one after another.

    One- and two-way marginals are computed from the probabilities directly.
    """
    tables = [table for block in blocks for table in block.tables(schema) if len(table) > 2]
    ordered = [sorted(table.values()) for table in tables]
    largest = max((math.prod(sizes[:-1]) for sizes in ordered), default=0)
    return SINGLE * RECOMPUTED_TABLES * min(MAX_ENTRIES, components * largest)


def mixture_draw_bytes(components: int, schema: Schema) -> int:
    """While rows are drawn from a mixture: the shares of its codes, and tables of three columns.

    The rows are refined until their tables are close to the mixture's.
    """
    sizes = sorted(schema.sizes.values())
    largest = math.prod(sizes[-3:-1]) if len(sizes) > 2 else 0
    joint = min(MAX_ENTRIES, components * largest)
    return DOUBLE * SHARE_COPIES * components * sum(sizes) + SINGLE * RECOMPUTED_TABLES * joint


def network_bytes(components: int, *, latent: int, hidden: Sequence[int], outputs: int) -> int:
    """A network's weights, and its activations for every component."""
    given, activations = latent, 0
    for width in hidden:
        given += width  # a layer also passes on its input
        activations += 2 * width + given
    weights = network_weights(latent=latent, hidden=hidden, outputs=outputs)
    kept = ACTIVATION_COPIES * components * activations
    return round(SINGLE * (kept + WEIGHT_COPIES * weights))


def network_weights(*, latent: int, hidden: Sequence[int], outputs: int) -> int:
    """The number of weights of a network, each layer of which also passes on its input."""
    weights, given = 0, latent
    for width in hidden:
        weights += (given + 1) * width
        given += width
    return weights + (given + 1) * outputs


def rows_bytes(rows: int, schema: Schema, blocks: Sequence[Block]) -> int:
    """The table of a search: its cells and their codes, and the counts of the measured queries."""
    codes = 1 + max((block.table_count(schema) for block in blocks), default=0)
    cells = rows * len(schema.attributes) * codes
    predicates = sum(block.size(schema) for block in blocks if not block.is_whole)
    return DOUBLE * (cells + rows * predicates) + BYTES_PER_QUERY * queries_of(blocks, schema)


def drawn_bytes(rows: int, schema: Schema) -> int:
    """The released rows while they are drawn, certified and written to files."""
    if not schema.is_linked:
        return rows * (DRAWN_CELL_BYTES * len(schema.attributes) + DRAWN_ROW_BYTES)
    of_groups = len(schema.columns_of_groups)
    cells = 1 + of_groups + schema.places * (len(schema.attributes) - of_groups)
    return rows * (LINKED_CELL_BYTES * cells + DRAWN_ROW_BYTES * schema.places)


def linked_entries(*, places: int, order: int, kinds: int, cells: Sequence[int]) -> int:
    """Factors and intermediate values of one component's tables of linked rows.

    `kinds` of individuals, distinguished by `order` columns, are held for every place: their factors,
    products, partial results and gradients. `cells` are those of each table's group columns.
    """
    return (2 * order + 5) * places * kinds + 3 * sum(cells)


def graphical_bytes(cells: int, measured: Sequence[Block], schema: Schema) -> int:
    """The tables of a graphical model's cliques, the values of the measurements, and steps of the fit."""
    queries = queries_of(measured, schema)
    steps = FIT_STEP_COPIES * min(FIT_STEPS * queries, max(queries, FIT_STEP_ENTRIES))
    return DOUBLE * (CLIQUE_COPIES * cells + steps) + BYTES_PER_QUERY * queries


def elimination_bytes(cells: int, asked: Sequence[Block], schema: Schema) -> int:
    """Memory of a graphical model's answers to queries that no single clique covers."""
    tables = ELIMINATED_TABLES * min(cells, ELIMINATED_ENTRIES)
    return DOUBLE * (tables + ANSWER_COPIES * queries_of(asked, schema))
