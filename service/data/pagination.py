"""Pages of a collection: a limit, and an opaque cursor that says where the next one begins."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from pydantic import ConfigDict, Field
from sqlalchemy import Select, select, tuple_
from sqlalchemy.orm import DeclarativeBase

from service.data.errors import FieldProblem, Invalid
from service.data.views import View

DEFAULT_LIMIT = 50
LARGEST_LIMIT = 200
"""Items of a page: by default, and at most."""

Item = TypeVar("Item")
Statement = TypeVar("Statement", bound=Select[Any])


class Listed(Protocol):
    """An item of a page."""

    @property
    def id(self) -> UUID:
        """Its id."""


Row = TypeVar("Row", bound=Listed)


class Page(View, Generic[Item]):
    """A part of a collection."""

    # Specialisations of the generic class do not inherit its docstring, and have no source code: a search
    # for the docstrings of their fields would slow down the start of every process of the service.
    model_config = ConfigDict(
        use_attribute_docstrings=False,
        json_schema_extra={"description": "A part of a collection."},
    )

    items: list[Item] = Field(description="The items of this page.")
    next: str | None = Field(
        description="Pass it as `cursor` to get the next page; null on the last one."
    )


@dataclass(frozen=True)
class Paging:
    """The requested page."""

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None

    def position(self, read: Callable[[Any], Item]) -> Item | None:
        """The decoded position to start after; None at the start of the collection."""
        if self.cursor is None:
            return None
        try:
            return read(json.loads(base64.b64decode(self.cursor, altchars=b"-_", validate=True)))
        except (binascii.Error, ValueError, TypeError, KeyError):
            raise Invalid(
                "the cursor is invalid; use `next` of the previous page",
                errors=[
                    FieldProblem(
                        loc=["query", "cursor"], message='"cursor" is not a cursor of this list'
                    )
                ],
            ) from None


def encode_cursor(position: Any) -> str:
    """A cursor for a position made of numbers and text."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def newest_first(statement: Statement, model: type[DeclarativeBase], paging: Paging) -> Statement:
    """Select the rows of one page and one more, which shows whether there is another page."""
    columns, last = model.__table__.c, paging.position(_id)
    if last is not None:
        shown = model.__table__.alias().c
        moment = select(shown.created_at).where(shown.id == last).scalar_subquery()
        statement = statement.where(tuple_(columns.created_at, columns.id) < tuple_(moment, last))
    return statement.order_by(columns.created_at.desc(), columns.id.desc()).limit(paging.limit + 1)


def page_of(rows: Sequence[Row], paging: Paging, show: Callable[[Row], Item]) -> Page[Item]:
    """The page that `newest_first` found."""
    shown = rows[: paging.limit]
    more = len(rows) > paging.limit
    # By id and not by time: the caller may not be allowed to see the time.
    last = encode_cursor(str(shown[-1].id)) if more else None
    return Page(items=[show(row) for row in shown], next=last)


def _id(position: object) -> UUID:
    if not isinstance(position, str):
        raise ValueError("not an id")
    return UUID(position)
