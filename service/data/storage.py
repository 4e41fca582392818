"""Objects in a local folder or in S3, behind one small interface.

Streams take constant memory, and an object appears whole or not at all. The asynchronous methods
serve HTTP bodies; the others serve workers.
"""

import hashlib
import re
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
from obstore.store import LocalStore, ObjectStore, S3Store

DRAFTS = "drafts"
"""Prefix of content whose hash, and so its name, is not known yet."""
PROBES = "probes"
"""Prefix of the objects that `check` writes."""

# Parts in flight at once, 5 MiB each: more would only take more memory.
_PARTS_AT_ONCE = 2
_PIECE_BYTES = 2**20
"""Size of the pieces in which objects are read and written."""
# Temporary files of objects that are being written to a folder; listings leave them out.
_UNFINISHED = re.compile(r".+#\d+")


@dataclass(frozen=True)
class StoredObject:
    """An object and the time when it was written."""

    key: str
    written_at: datetime


@dataclass(frozen=True)
class ObjectVersion:
    """The version of an object: it changes when the object is written again."""

    key: str
    size: int
    written_at: datetime
    e_tag: str | None


@dataclass(frozen=True)
class StoredContent:
    """An object that is named by its content."""

    key: str
    size: int
    sha256: str


class Storage:
    """A place for objects, each under a key such as `datasets/<id>/uploads/<name>`."""

    def __init__(self, store: ObjectStore, folder: Path | None = None) -> None:
        """Keep objects in `store`; `folder` is its path, if it is a local folder."""
        self._store = store
        self._folder = folder

    async def put(self, key: str, pieces: AsyncIterable[bytes]) -> None:
        """Store a stream. If the stream breaks off, nothing is stored."""
        await obstore.put_async(self._store, key, pieces, max_concurrency=_PARTS_AT_ONCE)

    def get(
        self,
        key: str,
        *,
        start: int = 0,
        end: int | None = None,
        version: ObjectVersion | None = None,
    ) -> AsyncIterator[bytes]:
        """The bytes from `start` up to, not including, `end`, as they arrive.

        Fails at once, before the first byte: FileNotFoundError if there is no such object,
        PreconditionError if it has another version than this one.
        """
        return _arriving(self._open(key, start, end, version))

    def write(self, key: str, pieces: Iterable[bytes]) -> None:
        """As `put`, for workers."""
        obstore.put(self._store, key, iter(pieces), max_concurrency=_PARTS_AT_ONCE)

    def read(
        self,
        key: str,
        *,
        start: int = 0,
        end: int | None = None,
        version: ObjectVersion | None = None,
    ) -> Iterator[bytes]:
        """As `get`, for workers."""
        return map(bytes, self._open(key, start, end, version))

    def version(self, key: str) -> ObjectVersion:
        """The version of an object; FileNotFoundError if there is none."""
        found = obstore.head(self._store, key)
        return ObjectVersion(key, found["size"], found["last_modified"], found["e_tag"])

    def _open(
        self, key: str, start: int, end: int | None, version: ObjectVersion | None
    ) -> "obstore.BytesStream":
        options: obstore.GetOptions = {}
        if end is not None:
            options["range"] = (start, end)
        elif start:
            options["range"] = {"offset": start}
        if version is not None and version.e_tag is not None:
            options["if_match"] = version.e_tag
        found = obstore.get(self._store, key, options=options)
        return found.stream(min_chunk_size=_PIECE_BYTES)

    def write_content(self, prefix: str, pieces: Iterable[bytes]) -> StoredContent:
        """Store content under its own SHA-256; the same content is stored once."""
        digest, size = hashlib.sha256(), 0

        def measured() -> Iterator[bytes]:
            nonlocal size
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                yield piece

        draft = f"{DRAFTS}/{secrets.token_hex(16)}"
        self.write(draft, measured())
        name = digest.hexdigest()
        key = f"{prefix}/{name[:2]}/{name}"
        try:
            obstore.copy(self._store, draft, key)
        finally:
            self.delete(draft)
        return StoredContent(key=key, size=size, sha256=name)

    def delete(self, key: str) -> None:
        """Delete an object; it may be missing."""
        with suppress(FileNotFoundError):
            obstore.delete(self._store, key)

    def delete_all(self, prefix: str) -> None:
        """Remove every object whose key begins with `prefix` and a slash."""
        for key in self.keys(prefix):
            self.delete(key)

    def keys(self, prefix: str) -> list[str]:
        """The keys that begin with `prefix` and a slash."""
        return [found.key for found in self.objects(prefix)]

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """The objects whose keys begin with `prefix` and a slash."""
        for batch in obstore.list(self._store, prefix):
            for found in batch:
                yield StoredObject(found["path"], found["last_modified"])

    def delete_unfinished(self, *, before: datetime) -> int:
        """Delete unfinished files last written before then; returns their number.

        Only a folder keeps such files: S3 has its own rules for incomplete uploads.
        """
        deleted = 0
        for path in self._folder.rglob("*#*") if self._folder is not None else ():
            if not _UNFINISHED.fullmatch(path.name):
                continue
            # The writer may finish or clean up at the same time.
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before.timestamp():
                    path.unlink()
                    deleted += 1
        return deleted

    def check(self) -> None:
        """Fail if the storage cannot be reached or written to."""
        probe = f"{PROBES}/{secrets.token_hex(16)}"
        obstore.put(self._store, probe, b"")
        obstore.delete(self._store, probe)


def open_storage(url: str) -> Storage:
    """The storage at `file:///folder` or `s3://bucket/prefix`.

    S3 takes its endpoint, region and credentials from the usual AWS_* variables.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        folder = Path(unquote(parts.path))
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Storage(LocalStore(folder, automatic_cleanup=True), folder)
    return Storage(S3Store(parts.netloc, prefix=parts.path.strip("/") or None))


async def _arriving(stream: "obstore.BytesStream") -> AsyncIterator[bytes]:
    async for piece in stream:
        yield bytes(piece)
