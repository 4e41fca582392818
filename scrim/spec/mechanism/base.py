"""Base classes of mechanisms, with the fields that the catalogue shows."""

from typing import ClassVar, get_args

from scrim.spec.base import Spec
from scrim.spec.workload import Workload

ROW_TYPES = ("marginals", "ranges", "binary_tree", "prefixes", "halfspaces")
"""Types of workload items about one table of rows."""
TWO_LEVEL_TYPES = ("hierarchical", "group_sizes")
"""Types of workload items about linked groups of individuals."""


class NamedSpec(Spec):
    """A mechanism, or `auto`, as a release may name it and the catalogue shows it."""

    paper: ClassVar[str]
    query_types: ClassVar[tuple[str, ...]] = ("marginals",)
    releases_rows: ClassVar[bool] = True
    needs_public_data: ClassVar[bool] = False
    takes_public_data: ClassVar[bool] = False
    """Whether a request may name a public dataset for it."""
    two_level: ClassVar[bool] = False
    """Whether it works on linked groups of individuals."""
    one_level: ClassVar[bool] = True
    """Whether it works on one table of rows."""

    measure: Workload | None = None
    """The queries to measure with noise; by default the mechanism chooses them. They may differ from the
    workload: the workload is answered from the model fitted to the measurements."""

    @classmethod
    def catalogue_name(cls) -> str:
        """The value of `name` for this mechanism."""
        return str(get_args(cls.model_fields["name"].annotation)[0])

    @classmethod
    def works_on(cls, *, linked: bool) -> bool:
        """Whether it works on linked groups of individuals, or on one table of rows."""
        return cls.two_level if linked else cls.one_level

    @classmethod
    def can_answer(cls, item_type: str, *, linked: bool) -> bool:
        """Whether it answers items of a type on such tables."""
        is_about_groups = item_type in TWO_LEVEL_TYPES
        return item_type in cls.query_types and is_about_groups == linked


class MechanismSpec(NamedSpec):
    """A mechanism with its parameters."""

    needs_bins: ClassVar[bool] = True
    """Whether it works only on discrete domains, where numbers are binned."""
    needs_histogram: ClassVar[bool] = False
    """Whether it keeps one weight for every cell of the domain."""
