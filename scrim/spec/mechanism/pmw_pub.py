"""`pmw_pub`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.public import PublicDataSpec
from scrim.spec.mechanism.weights import MultiplicativeWeightsSpec


class PmwPub(PublicDataSpec, MultiplicativeWeightsSpec):
    """Multiplicative weights over the rows of a public dataset, starting from its distribution."""

    paper: ClassVar[str] = (
        "Liu et al. (2021), Leveraging Public Data for Practical Private Query Release"
    )

    name: Literal["pmw_pub"]
    """Always `pmw_pub`."""
