"""`generative_network_pub`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.mixture import NetworkSpec, OneShotMixtureSpec, Rate
from scrim.spec.mechanism.public import PublicDataSpec


class GenerativeNetworkPub(PublicDataSpec, OneShotMixtureSpec, NetworkSpec):
    """A generator network and reweighted public rows, mixed as far as the measurements support it."""

    paper: ClassVar[str] = (
        "Fuentes, Mullins, McKenna, Miklau, Sheldon (2024), Joint Selection: Adaptively Incorporating "
        "Public Information for Private Synthetic Data (its aim; the method differs)"
    )
    query_types: ClassVar[tuple[str, ...]] = ("marginals",)

    name: Literal["generative_network_pub"]
    """Always `generative_network_pub`."""
    learning_rate: Rate = 0.003
    """Step size of the optimiser (Adam)."""
