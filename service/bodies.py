"""Request bodies: how large they may be, how long they may take, and how JSON is read.

A caller whose key has not been checked yet may send `SMALL` bytes. A route that has checked the key allows
more with `allow_body`. Bodies above `SMALL` are read a few at a time and are parsed in a thread.
"""

import asyncio
import json
from typing import Any

from fastapi import Request
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope

KIBIBYTE = 2**10
MEBIBYTE = 2**20

SMALL = 64 * KIBIBYTE
"""Maximum bytes of a body from an unknown caller, and of a body parsed on the event loop."""
MAX_CONTAINERS = 250_000
"""Maximum lists and objects in one body. An empty list takes 3 bytes in JSON and 60 in memory."""
MAX_FORM_FIELDS = 10_000
"""Maximum number of fields in one form."""
UNLIMITED = float("inf")

_LIMIT = "scrim.body_limit"


def allow_body(request: Request, most: float) -> None:
    """Allow this request to send up to `most` bytes; UNLIMITED for a body that is never held in memory."""
    request.scope[_LIMIT] = most


def limited(scope: Scope, receive: Receive, *, seconds: float) -> Receive:
    """Receive a body within the limits of its request: 413 if it is too large, 408 if too slow."""
    received = 0
    deadline: float | None = None
    is_complete = False

    async def receive_limited() -> Message:
        nonlocal received, deadline, is_complete
        if is_complete:
            return await receive()
        most = scope.get(_LIMIT, SMALL)
        _refuse_larger(max(received, declared_length(scope)), most)
        deadline = deadline or asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(None if most == UNLIMITED else deadline):
                message = await receive()
        except TimeoutError:
            raise HTTPException(
                408, f"the body did not arrive within {seconds:g} seconds"
            ) from None
        received += len(message.get("body", b""))
        _refuse_larger(received, most)
        is_complete = not message.get("more_body", False)
        return message

    return receive_limited


def declared_length(scope: Scope) -> int:
    """Return the body's size from its header, or 0 if the header is missing."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0


def is_large(scope: Scope) -> bool:
    """Whether the body is, or may be, large."""
    is_chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    return is_chunked or declared_length(scope) > SMALL


def parse_json(content: bytes) -> Any:
    """Parse JSON of bounded depth and size in memory; a JSONDecodeError is a 422."""
    if content.count(b"[") + content.count(b"{") > MAX_CONTAINERS:
        raise json.JSONDecodeError("too many lists and objects", "", 0)
    try:
        return from_json(content)
    except ValueError as error:
        # Also raised when values are nested too deeply. The message may quote the content.
        raise json.JSONDecodeError("invalid JSON", "", 0) from error


def _refuse_larger(size: float, most: float) -> None:
    if size > most:
        raise HTTPException(413, f"this body may have at most {most:,.0f} bytes")
