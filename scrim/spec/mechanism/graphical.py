"""Mechanisms that fit an exact graphical model."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.errors import SpecError
from scrim.spec.mechanism.base import Plan, Setting
from scrim.spec.mechanism.orders import smallest_below
from scrim.spec.mechanism.product import AdaptivePairsSpec, Steps
from scrim.spec.memory import elimination_bytes, graphical_bytes
from scrim.spec.schema import Schema
from scrim.spec.triangulation import has_room, model_cells, smallest_model
from scrim.spec.workload import Group

MaxCells = Annotated[int, Field(ge=1, le=2**27)]


class GraphicalSpec(AdaptivePairsSpec):
    """The graphical model of largest entropy, fitted again after every round."""

    max_cells: MaxCells = 2**22
    """Most cells that the tables of the model may have together. A marginal that would need more is
    no candidate."""
    steps: Steps = 200
    """Upper bound on the optimiser's steps in each round."""

    def plan(self, measured: Sequence[Group], setting: Setting) -> Plan:
        """As all adaptive mechanisms, where at least one marginal has room."""
        if self.per_round not in (None, 1):
            raise SpecError(
                f"{self.catalogue_name()} chooses one marginal in each round, because the next one must "
                "have room beside it; leave per_round out and ask for more rounds"
            )
        sizes = sizes_of([*measured, *setting.asked], setting.schema)
        smallest = smallest_model([group.attributes for group in measured], sizes)
        if smallest > self.max_cells:
            raise SpecError(
                f"a model of the smallest marginal that may be measured has {smallest:,} cells, and "
                f"max_cells is {self.max_cells:,}; allow more, measure smaller marginals, or declare "
                "wider bins"
            )
        return super().plan(measured, setting)

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """As many cells as are allowed, or as all candidates together need; and what is answered."""
        sizes = sizes_of([*measured, *setting.asked], setting.schema)
        sets = [group.attributes for group in measured]
        fits = has_room(sets, sizes, max_cells=self.max_cells)
        cells = model_cells(sets, sizes) if fits else self.max_cells
        return graphical_bytes(cells, measured, setting.schema) + elimination_bytes(
            cells, setting.asked, setting.schema
        )


class PgmEm(GraphicalSpec):
    """The graphical model of largest entropy, taught round by round where it is worst."""

    paper: ClassVar[str] = (
        "McKenna, Sheldon, Miklau (2019); Liu, Tang, Vietri, Wu (2023), section 5.3 (PGM+EM)"
    )

    name: Literal["pgm_em"]
    """Always `pgm_em`."""


class Aim(GraphicalSpec):
    """A graphical model that grows with the budget spent: little at first, more where it stops learning."""

    paper: ClassVar[str] = "McKenna, Mullins, Sheldon, Miklau (2022), AIM, arXiv 2201.12677"
    noise_power: ClassVar[float] = 1.0

    name: Literal["aim"]
    """Always `aim`."""
    schedule: Literal["equal", "annealed"] = "annealed"
    """`equal`: every round has the same budget. `annealed`: half the noise, for four times the budget,
    from the round on after one that changed the model no more than noise would have; until the budget
    is used up."""
    score: Literal["largest_error", "total_error"] = "total_error"
    """What a round selects by. `largest_error`: that of a candidate's queries. `total_error`: the sum of
    its absolute errors, less what the noise of measuring it would add up to, times the number of its
    columns in each of the asked marginals."""
    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """Share of the budget for measuring all one-way marginals once, before the first round."""
    max_cells: MaxCells = 2**22
    """Most cells that the tables of the model may have together. In each round as large a part of them
    as will then be spent of the budget; a marginal that would need more is no candidate of the round."""

    def choose_measured(self, setting: Setting) -> list[Group]:
        """All marginals below the asked ones: the rounds find out which are worth their noise."""
        return smallest_below(setting)


def sizes_of(groups: Sequence[Group], schema: Schema) -> dict[str, int]:
    """The sizes of all attributes that some groups are about, in the schema's order."""
    used = {name for group in groups for name in group.attributes}
    return {name: size for name, size in schema.sizes.items() if name in used}
