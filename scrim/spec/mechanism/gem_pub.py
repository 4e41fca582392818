"""`gem_pub`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.mixture import GenerativeSpec, Steps
from scrim.spec.mechanism.public import PublicDataSpec


class GemPub(PublicDataSpec, GenerativeSpec):
    """A generator network that is first trained on public data, which may lack columns."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), appendix E (GEM-Pub)"
    needs_public_columns: ClassVar[bool] = False

    name: Literal["gem_pub"]
    """Always `gem_pub`."""
    pretraining_steps: Steps = 800
    """Upper bound on the optimiser's steps on the public data, once for the queries that may be measured
    and once for the workload."""
