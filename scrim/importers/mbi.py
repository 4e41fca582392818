"""Domains of mbi (private-pgm): the number of values of each attribute, such as {"age": 85}."""

from typing import Any

from scrim.importers.declaration import Fields, declare, parse_json, read_whole
from scrim.spec.columns import MAX_CODES
from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema


def from_mbi_domain(document: Fields | str) -> Schema:
    """Each attribute as whole numbers from 0, one bin each, never missing."""
    return declare([_column(name, size) for name, size in parse_json(document).items()])


def _column(name: str, size: Any) -> Fields:
    values = read_whole(size, f"column {name!r}: its number of values")
    if not 1 <= values <= MAX_CODES:
        raise SpecError(
            f"column {name!r} must have between 1 and {MAX_CODES:,} values; group some together"
        )
    return {
        "name": name,
        "type": "integer",
        "lower": 0,
        "upper": values - 1,
        "bins": {"width": 1},
        "nullable": False,
    }
