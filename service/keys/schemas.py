"""Bodies and answers about API keys."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field

from synth.spec.base import Name, Spec

Scope = Literal["admin", "curator", "analyst"]
SCOPES: tuple[Scope, ...] = ("admin", "curator", "analyst")


class NewKey(Spec):
    """A key to be made."""

    name: Name
    """Who or what will use it."""
    scopes: Annotated[
        list[Scope],
        Field(min_length=1, max_length=len(SCOPES), examples=[["curator"]]),
    ]
    """What it may do: `admin` (keys, populations), `curator` (datasets, releases), `analyst`
    (published releases). Scopes do not include each other."""
    expires_at: Annotated[AwareDatetime, Field(strict=False)] | None = None
    """When it stops working; never, where not given."""


class KeyView(BaseModel):
    """A key, without its secret."""

    id: UUID
    name: str
    prefix: Annotated[str, Field(examples=["scrim_x3Jq91Lk"])]
    """The first characters of the secret, to tell keys apart."""
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class CreatedKey(KeyView):
    """A key that was just made."""

    key: Annotated[str, Field(examples=["scrim_..."])]
    """The secret. It is shown this once and stored nowhere."""
