"""`pep`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.weights import EntropyProjectionSpec


class Pep(EntropyProjectionSpec):
    """Private entropy projection: the distribution of largest entropy that fits all measurements."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), section 2.1 and appendix C"
    needs_histogram: ClassVar[bool] = True

    name: Literal["pep"]
    """Always `pep`."""
