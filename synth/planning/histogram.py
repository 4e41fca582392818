"""The size limit of mechanisms that keep one weight for every cell of the domain."""

import math
from collections.abc import Sequence

from scrim.spec.errors import DomainTooLarge
from scrim.spec.mechanism import MECHANISMS, MechanismSpec
from scrim.spec.workload import Block
from synth.planning.pace import columns_of
from synth.planning.spending import Setting

MAX_CELLS = 20_000_000
"""Largest histogram a mechanism keeps in memory (160 MB at eight bytes a cell)."""


def refuse_large_table(spec: MechanismSpec, measured: Sequence[Block], setting: Setting) -> None:
    """Refuse more combinations of the used columns than a histogram can hold."""
    used = columns_of((*setting.asked, *measured))
    cells = math.prod(setting.schema.sizes[name] for name in used)
    refuse_many_cells(spec, cells, columns=len(used))


def refuse_many_cells(spec: MechanismSpec, cells: int, *, columns: int) -> None:
    """Refuse a histogram with too many cells, and name the mechanisms that need none."""
    if cells <= MAX_CELLS:
        return
    names = ", ".join(
        m.catalogue_name()
        for m in MECHANISMS
        if not m.needs_histogram and m.works_on(linked=spec.two_level)
    )
    raise DomainTooLarge(
        f"{spec.catalogue_name()} keeps one weight for each of the {cells:,} combinations of the "
        f"{columns} columns in the request; it can hold {MAX_CELLS:,}. Ask about fewer "
        f"columns, declare wider bins, or use a mechanism without a histogram: {names}"
    )
