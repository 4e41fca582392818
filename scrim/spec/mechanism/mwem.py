"""`mwem`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.weights import MultiplicativeWeightsSpec


class Mwem(MultiplicativeWeightsSpec):
    """Multiplicative weights over the whole domain."""

    paper: ClassVar[str] = "Hardt, Ligett, McSherry (2012); Liu, Vietri, Wu (2021), appendix B"
    needs_histogram: ClassVar[bool] = True

    name: Literal["mwem"]
    """Always `mwem`."""
