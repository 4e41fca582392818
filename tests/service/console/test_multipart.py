"""Forms with a file, cut into pieces anywhere."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from fastapi import Request
from hypothesis import given
from hypothesis import strategies as st

from service.console.multipart import FileForm
from service.data.errors import Invalid

BOUNDARY = "----scrim"


def body(content: bytes, *, fields: Sequence[tuple[str, bytes]] = (("token", b"t"),)) -> bytes:
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
        + value
        + b"\r\n"
        for name, value in fields
    ]
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a b.csv"\r\n'
        "Content-Type: text/csv\r\n\r\n"
    )
    return b"".join([*parts, head.encode(), content, f"\r\n--{BOUNDARY}--\r\n".encode()])


def request(
    pieces: Sequence[bytes], kind: str = f"multipart/form-data; boundary={BOUNDARY}"
) -> Any:
    messages = [
        {"type": "http.request", "body": piece, "more_body": place < len(pieces) - 1}
        for place, piece in enumerate(pieces)
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    headers = [(b"content-type", kind.encode())]
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


def read(pieces: Sequence[bytes], **options: Any) -> tuple[dict[str, str], str, bytes]:
    async def whole() -> tuple[dict[str, str], str, bytes]:
        form = FileForm(request(pieces, **options))
        await form.open()
        content: AsyncIterator[bytes] = form.content()
        return form.fields, form.filename, b"".join([piece async for piece in content])

    return asyncio.run(whole())


@given(st.binary(max_size=300), st.lists(st.integers(0, 600), max_size=8))
def test_a_file_arrives_whole_however_it_is_cut(content: bytes, cuts: list[int]) -> None:
    sent = body(content, fields=[("token", b"secret"), ("table", b"rows")])
    places = sorted({0, len(sent), *(min(cut, len(sent)) for cut in cuts)})
    pieces = [sent[a:b] for a, b in pairwise(places)]
    assert read(pieces) == ({"token": "secret", "table": "rows"}, "a b.csv", content)


def test_what_looks_like_a_boundary_may_be_in_the_file() -> None:
    content = f"x\r\n--{BOUNDARY[:-1]}\r\n--{BOUNDARY}x"[:-2].encode()
    assert read([body(content)])[2] == content


@pytest.mark.parametrize("missing", [2, 20, 45])
def test_a_file_that_breaks_off_is_refused(missing: int) -> None:
    sent = body(b"0123456789" * 5)
    with pytest.raises(Invalid, match="was interrupted"):
        read([sent[: -len(BOUNDARY) - 4 - missing]])


def test_what_is_no_such_form_is_refused() -> None:
    for kind in ("text/csv", "multipart/form-data", ""):
        with pytest.raises(Invalid):
            read([b"a,b\n"], kind=kind)
    with pytest.raises(Invalid):
        read([b"nonsense" * 100])
    without = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'
    with pytest.raises(Invalid, match="choose a file"):
        read([f"{without}--{BOUNDARY}--".encode()])


def test_fields_are_short() -> None:
    with pytest.raises(Invalid, match="too long"):
        read([body(b"", fields=[("token", b"x" * 2000)])])
