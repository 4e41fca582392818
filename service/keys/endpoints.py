"""/v1/keys"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path

from service.data import keys
from service.data.models import KeyRow
from service.data.pagination import Page, page_of
from service.dependencies import Pages, Services
from service.keys.access import Admin
from service.keys.schemas import CreatedKey, KeyView, NewKey
from service.keys.service import create_key, revoke_key
from service.route import ApiRoute

router = APIRouter(prefix="/v1/keys", route_class=ApiRoute, tags=["keys"])

KeyId = Annotated[UUID, Path(description="The key's id.")]


@router.post("", status_code=201, summary="Create a key")
def create(body: NewKey, caller: Admin, context: Services) -> CreatedKey:
    """Create an API key. The response contains its secret, which is shown only once."""
    with context.transaction() as work:
        row, secret = create_key(work.session, body.name, body.scopes, expires_at=body.expires_at)
    return CreatedKey(**_view(row).model_dump(), key=secret)


@router.get("", summary="List keys")
def list_keys(caller: Admin, context: Services, paging: Pages) -> Page[KeyView]:
    """All API keys, newest first, without their secrets."""
    with context.transaction() as work:
        return page_of(keys.page(work.session, paging), paging, _view)


@router.delete("/{key_id}", status_code=204, summary="Revoke a key")
def revoke(key_id: KeyId, caller: Admin, context: Services) -> None:
    """Revoke an API key; it stops working at once."""
    with context.transaction() as work:
        revoke_key(work.session, key_id)


def _view(row: KeyRow) -> KeyView:
    return KeyView.model_validate(row, from_attributes=True)
