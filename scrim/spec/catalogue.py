"""The catalogue of mechanisms: what each is, where it comes from and which parameters it takes."""

from typing import Any

from scrim.spec.base import Spec
from scrim.spec.mechanism import CATALOGUE, NamedSpec


class CatalogueEntry(Spec):
    """One mechanism, described for people and for forms."""

    name: str
    """What a release calls it."""
    summary: str
    """What it does, in one line."""
    paper: str
    """Where it was published."""
    parameters: dict[str, Any]
    """JSON Schema of its parameters."""
    query_types: list[str]
    """Types of workload items it can answer."""
    releases_rows: bool
    """Whether it releases synthetic rows; if not, it answers only."""
    needs_public_data: bool
    """Whether it needs a public dataset beside the private one."""
    takes_public_data: bool
    """Whether it may be given one."""
    two_level: bool
    """Whether it is for groups of individuals alone."""


def catalogue() -> list[CatalogueEntry]:
    """Everything that a release may name."""
    return [_entry(mechanism) for mechanism in CATALOGUE]


def _entry(mechanism: type[NamedSpec]) -> CatalogueEntry:
    return CatalogueEntry(
        name=mechanism.catalogue_name(),
        summary=(mechanism.__doc__ or "").partition("\n")[0],
        paper=mechanism.paper,
        parameters=mechanism.model_json_schema(),
        query_types=list(mechanism.query_types),
        releases_rows=mechanism.releases_rows,
        needs_public_data=mechanism.needs_public_data,
        takes_public_data=mechanism.takes_public_data,
        two_level=mechanism.two_level,
    )
