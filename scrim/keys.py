"""API keys."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any

from scrim.blocking import blocking, blocking_each
from scrim.records import Key
from scrim.transport import Transport


class AsyncKeys:
    """API keys; for admins."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(
        self, name: str, scopes: Sequence[str], *, expires_at: datetime | None = None
    ) -> Key:
        """Create a key; its secret is shown only once."""
        body: dict[str, Any] = {"name": name, "scopes": [*scopes]}
        if expires_at is not None:
            body["expires_at"] = expires_at.isoformat()
        # Not repeatable: every call creates another key.
        return await self._transport.post("/v1/keys", Key, json=body, repeatable=False)

    def list(self) -> AsyncGenerator[Key, None]:
        """All keys, newest first, without their secrets."""
        return self._transport.pages("/v1/keys", Key)

    async def revoke(self, key_id: str) -> None:
        """Revoke a key."""
        await self._transport.send("DELETE", f"/v1/keys/{key_id}")


class Keys:
    """API keys; for admins."""

    def __init__(self, calls: AsyncKeys) -> None:
        self._calls = calls

    create = blocking(AsyncKeys.create)
    list = blocking_each(AsyncKeys.list)
    revoke = blocking(AsyncKeys.revoke)
