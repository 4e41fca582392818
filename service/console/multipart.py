"""A form with a file, read as a stream: uploads may be far larger than memory."""

from collections import deque
from collections.abc import AsyncIterator

from fastapi import Request
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from service.data.errors import Invalid

_LONGEST_FIELD = 1000
"""Longest value of a field before the file."""
_MOST_FIELDS = 20
"""Largest number of fields before the file."""
_FIELD_START, _FIELD_DATA, _FIELD_END = "start", "data", "end"


class FileForm:
    """Short fields, then one file. The fields must come first."""

    def __init__(self, request: Request) -> None:
        self.fields: dict[str, str] = {}
        self.filename = ""
        self._pieces = request.stream()
        self._events: deque[tuple[str, bytes]] = deque()
        self._header = [b"", b""]
        self._disposition = b""
        self._parser = MultipartParser(
            _boundary_of(request),
            {
                "on_header_field": lambda data, start, stop: self._add_header(0, data[start:stop]),
                "on_header_value": lambda data, start, stop: self._add_header(1, data[start:stop]),
                "on_header_end": self._end_header,
                "on_headers_finished": lambda: self._events.append(
                    (_FIELD_START, self._disposition)
                ),
                "on_part_data": lambda data, start, stop: self._events.append(
                    (_FIELD_DATA, data[start:stop])
                ),
                "on_part_end": lambda: self._events.append((_FIELD_END, b"")),
            },
        )

    async def open(self) -> None:
        """Read the fields, up to the beginning of the file."""
        name, value = "", b""
        async for kind, data in self._read():
            if kind == _FIELD_START:
                name, filename = _names_in(data)
                value = b""
                if filename is not None:
                    self.filename = filename
                    return
            elif kind == _FIELD_DATA:
                value += data
                if len(value) > _LONGEST_FIELD:
                    raise Invalid("a field of the form is too long")
            else:
                self.fields[name] = value.decode("utf-8", "replace")
                if len(self.fields) > _MOST_FIELDS:
                    raise Invalid("the form has too many fields before the file")
        raise Invalid("choose a file to upload")

    async def content(self) -> AsyncIterator[bytes]:
        """Yield the file in pieces; Invalid if the upload is interrupted."""
        async for kind, data in self._read():
            if kind == _FIELD_END:
                return
            yield data
        raise Invalid("the upload was interrupted; try again")

    async def _read(self) -> AsyncIterator[tuple[str, bytes]]:
        while True:
            while self._events:
                yield self._events.popleft()
            try:
                piece = await anext(self._pieces)
            except StopAsyncIteration:
                return
            try:
                self._parser.write(piece)
            except MultipartParseError:
                raise Invalid("the form cannot be read; send it as a browser would") from None

    def _add_header(self, part: int, data: bytes) -> None:
        self._header[part] += data

    def _end_header(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = value
        self._header = [b"", b""]


def _boundary_of(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data" or b"boundary" not in options:
        raise Invalid("send the file in a form")
    return options[b"boundary"]


def _names_in(disposition: bytes) -> tuple[str, str | None]:
    """The names of a field and of its file."""
    _, options = parse_options_header(disposition)
    named = {name: value.decode("utf-8", "replace") for name, value in options.items()}
    return named.get(b"name", ""), named.get(b"filename")
