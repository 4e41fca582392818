"""The input and output of the two clients: everything that differs between blocking and asynchronous."""

import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
)
from typing import Any, ParamSpec, Protocol, TypeVar

import anyio
import anyio.to_thread
import httpx

PIECE_BYTES = 2**20
"""Size of the pieces in which responses are read."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Wire(Protocol):
    """Sends requests, reads responses in pieces, pauses, and works on files."""

    def request(self, method: str, path: str, **options: Any) -> httpx.Request:
        """A request that can be sent several times."""

    def body(self, pieces: Iterable[bytes]) -> Any:
        """Pieces that are made when they are sent, as httpx takes them."""

    async def send(self, request: httpx.Request) -> httpx.Response:
        """The head of the answer; its content is still to be read."""

    async def read(self, response: httpx.Response) -> bytes:
        """The whole content."""

    def pieces(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        """The content, piece by piece."""

    def lines(self, response: httpx.Response) -> AsyncGenerator[str, None]:
        """The content, line by line as they arrive."""

    async def end(self, response: httpx.Response) -> None:
        """Stop reading an answer."""

    async def pause(self, seconds: float) -> None:
        """Wait."""

    async def work(
        self,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """Run work that takes a while, such as reading a file."""

    async def close(self) -> None:
        """Close the connections."""


class BlockingWire:
    """A wire for blocking calls."""

    def __init__(
        self,
        *,
        transport: httpx.BaseTransport | None,
        sleep: Callable[[float], None] = time.sleep,
        **settings: Any,
    ) -> None:
        self._http = httpx.Client(transport=transport, **settings)
        self._sleep = sleep

    def request(self, method: str, path: str, **options: Any) -> httpx.Request:
        """A request that can be sent several times."""
        return self._http.build_request(method, path, **options)

    def body(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        """The pieces as they are."""
        return pieces

    async def send(self, request: httpx.Request) -> httpx.Response:
        """The head of the answer."""
        return self._http.send(request, stream=True)

    async def read(self, response: httpx.Response) -> bytes:
        """The whole content."""
        return response.read()

    async def pieces(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        """The content, piece by piece."""
        for piece in response.iter_bytes(PIECE_BYTES):
            yield piece

    async def lines(self, response: httpx.Response) -> AsyncGenerator[str, None]:
        """The content, line by line as they arrive."""
        for line in response.iter_lines():
            yield line

    async def end(self, response: httpx.Response) -> None:
        """Stop reading an answer."""
        response.close()

    async def pause(self, seconds: float) -> None:
        """Wait."""
        self._sleep(seconds)

    async def work(
        self,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """Run it now."""
        return function(*args, **options)

    async def close(self) -> None:
        """Close the connections."""
        self._http.close()


class AsyncWire:
    """A wire for asynchronous calls."""

    def __init__(
        self,
        *,
        transport: httpx.AsyncBaseTransport | None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        **settings: Any,
    ) -> None:
        self._http = httpx.AsyncClient(transport=transport, **settings)
        self._sleep = sleep

    def request(self, method: str, path: str, **options: Any) -> httpx.Request:
        """A request that can be sent several times."""
        return self._http.build_request(method, path, **options)

    def body(self, pieces: Iterable[bytes]) -> AsyncIterable[bytes]:
        """The pieces, each of which is produced in a thread."""
        return _Threaded(pieces)

    async def send(self, request: httpx.Request) -> httpx.Response:
        """The head of the answer."""
        return await self._http.send(request, stream=True)

    async def read(self, response: httpx.Response) -> bytes:
        """The whole content."""
        return await response.aread()

    async def pieces(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        """The content, piece by piece."""
        async for piece in response.aiter_bytes(PIECE_BYTES):
            yield piece

    async def lines(self, response: httpx.Response) -> AsyncGenerator[str, None]:
        """The content, line by line as they arrive."""
        async for line in response.aiter_lines():
            yield line

    async def end(self, response: httpx.Response) -> None:
        """Stop reading an answer."""
        await response.aclose()

    async def pause(self, seconds: float) -> None:
        """Wait."""
        await self._sleep(seconds)

    async def work(
        self,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """Run it in a thread."""
        return await anyio.to_thread.run_sync(lambda: function(*args, **options))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


class _Threaded:
    """Pieces that are produced in threads, from the start for each iteration."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = iter(self._pieces)
        while piece := await anyio.to_thread.run_sync(_next, pieces):
            yield piece


def _next(pieces: Iterator[bytes]) -> bytes:
    """The next piece; an empty one at the end, as StopIteration cannot cross threads."""
    return next(pieces, b"")
