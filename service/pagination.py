"""Pages of a collection: a limit, and an opaque cursor that says where the next one begins."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from pydantic import ConfigDict
from sqlalchemy import Select, select, tuple_
from sqlalchemy.orm import aliased

from service.errors import FieldError, Invalid
from service.models import ApiKey, Dataset, PopulationRow, ReleaseRow
from service.views import View

DEFAULT_LIMIT = 50
LARGEST_LIMIT = 200

Item = TypeVar("Item")
Listed = TypeVar("Listed", ApiKey, PopulationRow, Dataset, ReleaseRow)


class Page(View, Generic[Item]):
    """A part of a collection."""

    # A page of something in particular does not inherit the text above.
    model_config = ConfigDict(json_schema_extra={"description": "A part of a collection."})

    items: list[Item]
    """What there is on this page."""
    next: str | None
    """Pass it as `cursor` to get the next page; null on the last one."""


@dataclass(frozen=True)
class Paging:
    """What a caller asked for."""

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None

    def position(self, read: Callable[[Any], Item]) -> Item | None:
        """Where to begin, in the words of the collection; None at its start."""
        if self.cursor is None:
            return None
        try:
            return read(json.loads(base64.b64decode(self.cursor, altchars=b"-_", validate=True)))
        except (binascii.Error, ValueError, TypeError, KeyError):
            raise Invalid(
                "the cursor is not one that this service made; use `next` of the page before",
                errors=[FieldError(loc=["query", "cursor"], message="is not a cursor")],
            ) from None


def encode_cursor(position: Any) -> str:
    """A cursor for a position made of numbers and text."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def newest_first(statement: Select[Listed], table: type[Listed], paging: Paging) -> Select[Listed]:
    """The rows of one page, and one more, which tells whether there is another page."""
    last = paging.position(_id)
    if last is not None:
        shown = aliased(table)
        moment = select(shown.created_at).where(shown.id == last).scalar_subquery()
        statement = statement.where(tuple_(table.created_at, table.id) < tuple_(moment, last))
    return statement.order_by(table.created_at.desc(), table.id.desc()).limit(paging.limit + 1)


def page_of(rows: Sequence[Listed], paging: Paging, show: Callable[[Listed], Item]) -> Page[Item]:
    """The page that `newest_first` found."""
    shown = rows[: paging.limit]
    more = len(rows) > paging.limit
    # Not its time: whoever reads the cursor may not know that.
    last = encode_cursor(str(shown[-1].id)) if more else None
    return Page(items=[show(row) for row in shown], next=last)


def _id(position: object) -> UUID:
    if not isinstance(position, str):
        raise ValueError("not an id")
    return UUID(position)
