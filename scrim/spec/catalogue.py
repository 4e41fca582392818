"""The catalogue of mechanisms: what each one is, its source and its parameters."""

from typing import Any

from scrim.spec.base import Spec
from scrim.spec.mechanism import CATALOGUE, NamedSpec


class CatalogueEntry(Spec):
    """One mechanism, described for people and for forms."""

    name: str
    """Its name in a release request."""
    summary: str
    """What it does, in one line."""
    paper: str
    """The paper that describes it."""
    parameters: dict[str, Any]
    """JSON Schema of its parameters."""
    query_types: list[str]
    """Types of workload items that it can answer."""
    releases_rows: bool
    """Whether it releases synthetic rows; if not, it releases answers only."""
    needs_public_data: bool
    """Whether it needs a public dataset in addition to the private one."""
    takes_public_data: bool
    """Whether a request may name a public dataset for it."""
    one_level: bool
    """Whether it works on one table of rows."""
    two_level: bool
    """Whether it works on groups of individuals (two linked tables)."""


def catalogue() -> list[CatalogueEntry]:
    """All mechanisms that a release may name."""
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
        one_level=mechanism.one_level,
        two_level=mechanism.two_level,
    )
