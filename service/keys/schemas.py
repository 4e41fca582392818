"""Bodies and answers about API keys."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from scrim.spec.base import Name, Spec
from service.data.views import View

Scope = Literal["admin", "curator", "analyst"]
SCOPES: tuple[Scope, ...] = ("admin", "curator", "analyst")


@dataclass(frozen=True)
class Caller:
    """The key that a request was made with."""

    key_id: UUID
    scopes: frozenset[str]

    @property
    def is_curator(self) -> bool:
        """Whether the caller may see details of a job: its progress, its times and each charge."""
        return "curator" in self.scopes


class NewKey(Spec):
    """A request to create a key."""

    name: Name
    """Who or what will use it."""
    scopes: Annotated[
        list[Scope],
        Field(min_length=1, max_length=len(SCOPES), examples=[["curator"]]),
    ]
    """What it may do: `admin` (keys, populations), `curator` (datasets, releases), `analyst`
    (published releases). Scopes do not include each other."""
    expires_at: Annotated[AwareDatetime, Field(strict=False)] | None = None
    """When it stops working; by default never."""


class KeyView(View):
    """A key, without its secret."""

    id: UUID
    """The key's id."""
    name: str
    """Who or what uses it."""
    prefix: Annotated[str, Field(examples=["scrim_x3Jq91Lk"])]
    """The first characters of the secret, to tell keys apart."""
    scopes: list[Scope]
    """What it may do."""
    created_at: datetime
    """When it was created."""
    expires_at: datetime | None
    """When it stops working; null: never."""
    revoked_at: datetime | None
    """When it was revoked; null: it was not."""


class CreatedKey(KeyView):
    """A newly created key, with its secret."""

    key: Annotated[str, Field(examples=["scrim_..."])]
    """The secret. It is shown only once and not stored."""
