"""`pep_pub`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.public import PublicDataSpec
from scrim.spec.mechanism.weights import EntropyProjectionSpec


class PepPub(PublicDataSpec, EntropyProjectionSpec):
    """Entropy projection over the rows of a public dataset, starting from its distribution."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), appendix E"

    name: Literal["pep_pub"]
    """Always `pep_pub`."""
