"""Schemas that the service keeps under a name and a version."""

from collections.abc import AsyncGenerator

from scrim.blocking import blocking, blocking_each
from scrim.errors import UnusableInput
from scrim.records import SavedSchema
from scrim.transport import Transport, idempotent
from scrim.values import AnySchema, plain


class AsyncSchemas:
    """Saved schemas; for curators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def save(
        self, name: str, schema: AnySchema, *, idempotency_key: str | None = None
    ) -> SavedSchema:
        """Save a schema under a name; the same name again saves its next version."""
        return await self._transport.post(
            "/v1/schemas",
            SavedSchema,
            json={"name": name, "schema": plain(schema)},
            headers=idempotent(idempotency_key),
        )

    def list(self, name: str | None = None) -> AsyncGenerator[SavedSchema, None]:
        """Every version, newest first; of one name, or of all."""
        params = {} if name is None else {"name": name}
        return self._transport.pages("/v1/schemas", SavedSchema, params)

    async def get(self, schema_id: str) -> SavedSchema:
        """One version of a saved schema, with its columns."""
        return await self._transport.get(f"/v1/schemas/{schema_id}", SavedSchema)

    async def find(self, name: str, *, version: int | None = None) -> SavedSchema:
        """The newest version of a name, or a given one, with its columns."""
        versions = [each async for each in self.list(name)]
        # The newest is first only if no two were saved at the same moment.
        versions.sort(key=lambda each: each.version, reverse=True)
        found = [each for each in versions if version in (None, each.version)]
        if not found:
            wanted = f"{name!r}" if version is None else f"{name!r} of version {version}"
            raise UnusableInput(f"there is no saved schema {wanted}; see `scrim schema list`")
        return await self.get(found[0].id)


class Schemas:
    """Saved schemas; for curators."""

    def __init__(self, calls: AsyncSchemas) -> None:
        self._calls = calls

    save = blocking(AsyncSchemas.save)
    list = blocking_each(AsyncSchemas.list)
    get = blocking(AsyncSchemas.get)
    find = blocking(AsyncSchemas.find)
