"""What all mechanisms share: what the catalogue says about them."""

from typing import ClassVar, get_args

from scrim.spec.base import Spec
from scrim.spec.workload import Workload


class NamedSpec(Spec):
    """What a release may name, and what the catalogue shows of it."""

    paper: ClassVar[str]
    query_types: ClassVar[tuple[str, ...]] = ("marginals",)
    releases_rows: ClassVar[bool] = True
    needs_public_data: ClassVar[bool] = False
    takes_public_data: ClassVar[bool] = False
    """Whether a public dataset may be named beside it."""
    two_level: ClassVar[bool] = False
    """Whether it works on groups of individuals, linked, instead of one table of rows."""

    measure: Workload | None = None
    """What is measured with noise; the mechanism's own choice where not given. What is measured and
    what is asked are two things: everything asked is answered from the model fitted to what is measured."""

    @classmethod
    def catalogue_name(cls) -> str:
        """The value of `name` that stands for this mechanism."""
        return str(get_args(cls.model_fields["name"].annotation)[0])


class MechanismSpec(NamedSpec):
    """A mechanism with its parameters."""

    needs_bins: ClassVar[bool] = True
    """Whether it works on discrete domains alone, where numbers are their bins."""
    needs_histogram: ClassVar[bool] = False
    """Whether it keeps one weight for every cell of the domain."""
