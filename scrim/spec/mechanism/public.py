"""Mechanisms that start from public data."""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.base import Spec
from scrim.spec.mechanism.base import MechanismSpec, Setting
from scrim.spec.mechanism.histogram import EntropyProjectionSpec, MultiplicativeWeightsSpec
from scrim.spec.mechanism.product import GenerativeSpec, Steps
from scrim.spec.memory import (
    BYTES_PER_QUERY,
    DOUBLE,
    GROUPS_PER_STEP,
    SINGLE,
    joint_table_bytes,
    queries_of,
)
from scrim.spec.workload import Group


class Screen(Spec):
    """Pay for a look at how well the public rows can fit, and stop at once if they cannot."""

    share: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """Share of the release's budget that pays for it."""
    max_error: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Largest error, as a fraction of the rows, that the best weights on the public rows may leave.
    Above it the release ends there, and what it has not spent is returned."""


class PublicDataSpec(MechanismSpec):
    """What all mechanisms that start from public data share."""

    needs_public_data: ClassVar[bool] = True
    takes_public_data: ClassVar[bool] = True
    needs_public_columns: ClassVar[bool] = True
    """Whether the public data must have every column that is asked about or measured."""

    screen: Screen | None = None
    """Whether to measure first how closely weights on the public rows can answer the workload."""


class PmwPub(PublicDataSpec, MultiplicativeWeightsSpec):
    """Multiplicative weights on the rows of a public dataset, starting from its distribution."""

    paper: ClassVar[str] = (
        "Liu et al. (2021), Leveraging Public Data for Practical Private Query Release"
    )

    name: Literal["pmw_pub"]
    """Always `pmw_pub`."""


class PepPub(PublicDataSpec, EntropyProjectionSpec):
    """Entropy projection on the rows of a public dataset, starting from its distribution."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), appendix E"

    name: Literal["pep_pub"]
    """Always `pep_pub`."""


class GemPub(PublicDataSpec, GenerativeSpec):
    """A generator network that learns public data first; they may lack columns."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), appendix E (GEM-Pub)"
    needs_public_columns: ClassVar[bool] = False

    name: Literal["gem_pub"]
    """Always `gem_pub`."""
    pretraining_steps: Steps = 800
    """Upper bound on the optimiser's steps on the public data: as many on what may be measured, and
    then on what is asked."""

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """The public answers to all that is asked, and one step on a part of it; not the rows."""
        asked, schema = setting.asked, setting.schema
        batch = asked[:: math.ceil(len(asked) / GROUPS_PER_STEP)]
        answers = (2 * SINGLE + DOUBLE) * queries_of(asked, schema)  # value, noise and place
        step = joint_table_bytes(self.components, batch, schema)
        step += BYTES_PER_QUERY * queries_of(batch, schema)
        return super().memory_bytes(setting, measured) + answers + step
