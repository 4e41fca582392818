"""Base classes of mechanisms, with the fields that the catalogue shows."""

from typing import ClassVar, get_args

from scrim.spec.base import Spec
from scrim.spec.workload import Workload


class NamedSpec(Spec):
    """A mechanism, or `auto`, as a release may name it and the catalogue shows it."""

    paper: ClassVar[str]
    query_types: ClassVar[tuple[str, ...]] = ("marginals",)
    releases_rows: ClassVar[bool] = True
    needs_public_data: ClassVar[bool] = False
    takes_public_data: ClassVar[bool] = False
    """Whether a request may name a public dataset for it."""
    two_level: ClassVar[bool] = False
    """Whether it works on linked groups of individuals instead of one table of rows."""

    measure: Workload | None = None
    """The queries to measure with noise; by default the mechanism chooses them. They may differ from the
    workload: the workload is answered from the model fitted to the measurements."""

    @classmethod
    def catalogue_name(cls) -> str:
        """The value of `name` for this mechanism."""
        return str(get_args(cls.model_fields["name"].annotation)[0])


class MechanismSpec(NamedSpec):
    """A mechanism with its parameters."""

    needs_bins: ClassVar[bool] = True
    """Whether it works only on discrete domains, where numbers are binned."""
    needs_histogram: ClassVar[bool] = False
    """Whether it keeps one weight for every cell of the domain."""
