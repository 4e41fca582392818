"""`generative_network`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.mixture import NetworkSpec, OneShotMixtureSpec, Rate


class GenerativeNetwork(OneShotMixtureSpec, NetworkSpec):
    """A generator network fitted to marginals that are measured once."""

    paper: ClassVar[str] = "Liu, Tang, Vietri, Wu (2023), appendix B.4 (GN)"

    name: Literal["generative_network"]
    """Always `generative_network`."""
    learning_rate: Rate = 0.003
    """Step size of the optimiser (Adam)."""
