"""Mechanisms that reweight a distribution; these two keep one weight for every cell of the domain."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.mechanism.adaptive import AdaptiveSpec
from scrim.spec.mechanism.base import Setting
from scrim.spec.memory import histogram_bytes
from scrim.spec.workload import Group


class MultiplicativeWeightsSpec(AdaptiveSpec):
    """Parameters of multiplicative weights, whatever carries the weights."""

    past_measurements: bool = True
    """Update with all measurements so far in every round, not with the newest alone."""
    passes: Annotated[int, Field(ge=1, le=10_000)] = 40
    """How often a round goes over its measurements."""
    output: Literal["last", "average"] = "last"
    """Release the last distribution, or the average over all rounds."""


class Mwem(MultiplicativeWeightsSpec):
    """Multiplicative weights over the whole domain."""

    paper: ClassVar[str] = "Hardt, Ligett, McSherry (2012); Liu, Vietri, Wu (2021), appendix B"
    needs_histogram: ClassVar[bool] = True

    name: Literal["mwem"]
    """Always `mwem`."""

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """The weights and their sum over the rounds; at the end also its average, if asked for."""
        copies = 3 if self.output == "average" else 2
        return histogram_bytes([*measured, *setting.asked], setting.schema, copies=copies)


class EntropyProjectionSpec(AdaptiveSpec):
    """Parameters of entropy projection, whatever carries the weights."""

    passes: Annotated[int, Field(ge=1, le=10_000)] = 25
    """Upper bound on the sweeps over the measurements in one round (the paper's T_max)."""
    tolerance: Annotated[float, Field(ge=0, le=100)] = 2.0
    """The paper's gamma, as a multiple of each measurement's noise scale: answers this close to the
    measurement are left alone."""


class Pep(EntropyProjectionSpec):
    """Private entropy projection: the distribution of largest entropy that fits all measurements."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), section 2.1 and appendix C"
    needs_histogram: ClassVar[bool] = True

    name: Literal["pep"]
    """Always `pep`."""

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """The weights, which are changed in place."""
        return histogram_bytes([*measured, *setting.asked], setting.schema, copies=1)
