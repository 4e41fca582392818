"""The client: `Client(url, key)` and `AsyncClient(url, key)`, with the same resources and methods."""

import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import anyio
import httpx

from scrim.blocking import finish
from scrim.datasets import AsyncDatasets, Datasets
from scrim.keys import AsyncKeys, Keys
from scrim.populations import AsyncPopulations, Populations
from scrim.records import Mechanism
from scrim.releases import AsyncReleases, Releases
from scrim.saved_schemas import AsyncSchemas, Schemas
from scrim.transport import Transport, settings_for
from scrim.wire import AsyncWire, BlockingWire


class Client:
    """A connection to the service with one API key, whose scopes decide what it may do."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect to `url`, such as `https://scrim.example.org`, when the first call is made."""
        wire = BlockingWire(transport=transport, sleep=sleep, **settings_for(url, key))
        self._transport = Transport(wire, url)
        self.keys = Keys(AsyncKeys(self._transport))
        self.populations = Populations(AsyncPopulations(self._transport))
        self.schemas = Schemas(AsyncSchemas(self._transport))
        self.datasets = Datasets(AsyncDatasets(self._transport))
        self.releases = Releases(self._transport)

    def mechanisms(self) -> list[Mechanism]:
        """Every mechanism that a release may name."""
        return finish(_mechanisms(self._transport))

    def close(self) -> None:
        """Close the connections."""
        finish(self._transport.wire.close())

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self.close()


class AsyncClient:
    """The same for asynchronous programs: calls are awaited, lists are read by `async for`."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """Connect to `url`, such as `https://scrim.example.org`, when the first call is made."""
        wire = AsyncWire(transport=transport, sleep=sleep, **settings_for(url, key))
        self._transport = Transport(wire, url)
        self.keys = AsyncKeys(self._transport)
        self.populations = AsyncPopulations(self._transport)
        self.schemas = AsyncSchemas(self._transport)
        self.datasets = AsyncDatasets(self._transport)
        self.releases = AsyncReleases(self._transport)

    async def mechanisms(self) -> list[Mechanism]:
        """Every mechanism that a release may name."""
        return await _mechanisms(self._transport)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.wire.close()

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self.close()


async def _mechanisms(transport: Transport) -> list[Mechanism]:
    return [mechanism async for mechanism in transport.pages("/v1/mechanisms", Mechanism)]
