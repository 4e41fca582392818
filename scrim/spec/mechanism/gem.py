"""`gem`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.mixture import GenerativeSpec


class Gem(GenerativeSpec):
    """A generator network, trained in rounds on the queries that it answers worst."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), section 2.2 and appendix D (GEM)"

    name: Literal["gem"]
    """Always `gem`."""
