"""How much memory a release needs at its peak, from public numbers alone: its fit and its outputs.

The limits are those that the fits keep. How often a number is held at once was measured
(tests/synth/planning/test_memory.py); that counts gradients, and what an optimiser remembers.
"""

import math
from collections.abc import Iterable, Sequence

from scrim.spec.schema import Schema
from scrim.spec.workload import Block

MAX_ENTRIES = 2**23
"""Largest table of joint probabilities held at once, in numbers of four bytes: 32 MiB."""
KEPT_TABLES = 16
"""Where all of them together are larger than this many, they are computed again for the gradient."""
BLOCKS_PER_STEP = 96
"""How many marginals one step on public data looks at: memory and time of a step."""
KEPT_PLANS = 64
"""For how many sets of marginals it is remembered how a mixture answers them."""
ELIMINATED_ENTRIES = 2**20
"""Largest table between a graphical model and an answer across its cliques, where no clique has a
larger one: 8 MiB. What would be larger is computed in slices; as much is remembered for the next query."""
CACHED_BYTES = 2**28
"""How much memory weighted rows, or kinds of groups, may use to remember in which cells they are."""

DOUBLE = 8
SINGLE = 4
TABLE_COPIES = 14
"""Logits, their gradient and two moments, probabilities, and the gradients of each use of them."""
OUTPUT_COPIES = 12
"""The same for what a network puts out, which has no moments."""
ACTIVATION_COPIES = 1.5
"""Activations are kept for the gradient, whose own are dropped layer by layer."""
WEIGHT_COPIES = 4
"""Weights, their gradient and two moments."""
RECOMPUTED_TABLES = 4
"""A table that is computed again, its gradient, and what lies between them."""
CLIQUE_COPIES = 10
"""The distributions of cliques, those of the fit before, what is added up to them, and sums of them."""
ELIMINATED_TABLES = 24
"""Tables on the way to an answer across cliques, those that are remembered, and what multiplies them."""
ANSWER_COPIES = 2
"""The tables of answers, and all of them in one vector."""
BYTES_PER_QUERY = 44
"""Value, noise, place among all cells, answer, residual, and their gradients."""

DRAWN_CELL_BYTES = 16
"""The code of a drawn cell, and its value or a second copy of its code."""
LINKED_CELL_BYTES = 24
"""The same where groups are linked: the codes of all places, of those that are taken, and their values."""
DRAWN_ROW_BYTES = 40
"""What drawing holds of a row beside its cells: its component, its place, its order, and two points."""
ANSWER_BYTES = 320
"""A released answer: its names, its figures, and a copy of them in a file."""


def queries_of(blocks: Iterable[Block], schema: Schema) -> int:
    """The number of queries of some blocks together."""
    return sum(block.size(schema) for block in blocks)


def histogram_bytes(blocks: Iterable[Block], schema: Schema, *, copies: int) -> int:
    """One weight for every combination of the attributes in some blocks."""
    used = {name for block in blocks for name in block.attributes}
    return DOUBLE * copies * math.prod(schema.sizes[name] for name in used)


def joint_table_bytes(components: int, blocks: Iterable[Block], schema: Schema) -> int:
    """The tables from which a mixture's answers to larger marginals are multiplied.

    One- and two-way marginals are multiplied from the probabilities themselves.
    """
    tables = [table for block in blocks for table in block.tables(schema) if len(table) > 2]
    ordered = [sorted(table.items(), key=lambda axis: axis[1]) for table in tables]
    leading = {tuple(axes[:-1]) for axes in ordered}
    entries = components * sum(math.prod(size for _, size in axes) for axes in leading)
    if entries > KEPT_TABLES * MAX_ENTRIES:
        return SINGLE * RECOMPUTED_TABLES * MAX_ENTRIES
    following = components * sum(axes[-1][1] for axes in ordered)
    return SINGLE * (entries + following)


def network_bytes(components: int, *, latent: int, hidden: Sequence[int], outputs: int) -> int:
    """A network's weights, and its activations for every component."""
    given, weights, activations = latent, 0, 0
    for width in hidden:
        weights += (given + 1) * width
        given += width  # a layer also passes on what it was given
        activations += 2 * width + given
    weights += (given + 1) * outputs
    kept = ACTIVATION_COPIES * components * activations
    return round(SINGLE * (kept + WEIGHT_COPIES * weights))


def rows_bytes(rows: int, schema: Schema, blocks: Sequence[Block]) -> int:
    """A table that is searched: its cells and their codes, and the counts of what is measured."""
    codes = 1 + max((block.table_count(schema) for block in blocks), default=0)
    cells = rows * len(schema.attributes) * codes
    predicates = sum(block.size(schema) for block in blocks if not block.is_whole)
    return DOUBLE * (cells + rows * predicates) + BYTES_PER_QUERY * queries_of(blocks, schema)


def drawn_bytes(rows: int, schema: Schema) -> int:
    """The rows that are released, while they are drawn, certified and written to files."""
    if not schema.is_linked:
        return rows * (DRAWN_CELL_BYTES * len(schema.attributes) + DRAWN_ROW_BYTES)
    of_groups = len(schema.columns_of_groups)
    cells = 1 + of_groups + schema.places * (len(schema.attributes) - of_groups)
    return rows * (LINKED_CELL_BYTES * cells + DRAWN_ROW_BYTES * schema.places)


def linked_entries(*, places: int, order: int, kinds: int, cells: Sequence[int]) -> int:
    """Numbers that a component's tables of linked rows are multiplied from, and those in between.

    `kinds` of individuals, told apart by `order` columns, are held for every place: their factors, the
    products, what is found so far, and gradients. `cells` are those of each table's group columns.
    """
    return (2 * order + 5) * places * kinds + 3 * sum(cells)


def graphical_bytes(cells: int, measured: Sequence[Block], schema: Schema) -> int:
    """The tables of a graphical model's cliques, and what is fitted to the measurements."""
    return DOUBLE * CLIQUE_COPIES * cells + BYTES_PER_QUERY * queries_of(measured, schema)


def elimination_bytes(cells: int, asked: Sequence[Block], schema: Schema) -> int:
    """What such a model needs to answer what none of its cliques holds."""
    tables = ELIMINATED_TABLES * min(cells, ELIMINATED_ENTRIES)
    return DOUBLE * (tables + ANSWER_COPIES * queries_of(asked, schema))
