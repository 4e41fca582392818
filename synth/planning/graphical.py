"""Models of limited size, and their memory; shared by aim and pgm_em."""

from collections.abc import Sequence

from scrim.spec.errors import SpecError
from scrim.spec.mechanism import GraphicalSpec
from scrim.spec.schema import Schema
from scrim.spec.workload import Block
from synth.planning.memory import elimination_bytes, graphical_bytes
from synth.planning.pace import columns_of
from synth.planning.spending import Setting
from synth.planning.triangulation import has_room, model_cells, smallest_model


def refuse_without_room(spec: GraphicalSpec, measured: Sequence[Block], setting: Setting) -> None:
    """Refuse several marginals per round, or a limit of cells below the smallest model."""
    if spec.per_round not in (None, 1):
        raise SpecError(
            f"{spec.catalogue_name()} selects one marginal per round, because each one limits which "
            "others still fit in the model; leave per_round out and request more rounds"
        )
    sizes = sizes_of([*measured, *setting.asked], setting.schema)
    smallest = smallest_model([block.attributes for block in measured], sizes)
    if smallest > spec.max_cells:
        raise SpecError(
            f"a model of the smallest marginal that may be measured has {smallest:,} cells, and "
            f"max_cells is {spec.max_cells:,}; allow more, measure smaller marginals, or declare "
            "wider bins"
        )


def model_bytes(spec: GraphicalSpec, measured: Sequence[Block], setting: Setting) -> int:
    """The smaller of the allowed cells and the cells of all candidates together; and the answers."""
    sizes = sizes_of([*measured, *setting.asked], setting.schema)
    sets = [block.attributes for block in measured]
    fits = has_room(sets, sizes, max_cells=spec.max_cells)
    cells = model_cells(sets, sizes) if fits else spec.max_cells
    return graphical_bytes(cells, measured, setting.schema) + elimination_bytes(
        cells, setting.asked, setting.schema
    )


def sizes_of(blocks: Sequence[Block], schema: Schema) -> dict[str, int]:
    """The sizes of all attributes of the blocks, in the schema's order."""
    used = set(columns_of(blocks))
    return {name: size for name, size in schema.sizes.items() if name in used}
