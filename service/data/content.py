"""Read objects that are stored under the hash of their content.

The whole object is compared with its hash before its first byte is handed out, so that damage is an
error and never a result. An object that matched is remembered by its version in the storage, so that
ranges and repeated reads need no second comparison, and it is read on condition that it still has
that version.

    DamagedContent    an object is missing, or does not match its hash
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

from obstore.exceptions import PreconditionError

from service.data.storage import ObjectVersion, Storage, StoredContent

MOST_REMEMBERED = 10_000
"""Largest number of objects whose version is remembered."""

Pieces = TypeVar("Pieces")


class DamagedContent(Exception):
    """An object is missing, or does not match its hash."""


class CheckedContent:
    """Objects named by their content, read only where the content matches."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._matched: OrderedDict[tuple[ObjectVersion, str], None] = OrderedDict()
        self._lock = threading.Lock()

    def read(
        self, content: StoredContent, *, start: int = 0, end: int | None = None
    ) -> Iterator[bytes]:
        """The bytes from `start` up to, not including, `end`; DamagedContent at once if damaged."""
        return self._opened(
            content,
            lambda version: self._storage.read(content.key, start=start, end=end, version=version),
        )

    def get(
        self, content: StoredContent, *, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        """As `read`, for HTTP answers."""
        return self._opened(
            content,
            lambda version: self._storage.get(content.key, start=start, end=end, version=version),
        )

    def _opened(self, content: StoredContent, open_: Callable[[ObjectVersion], Pieces]) -> Pieces:
        while True:
            try:
                version = self._storage.version(content.key)
                self._check(content, version)
                return open_(version)
            except FileNotFoundError:
                raise DamagedContent("the object is missing") from None
            except PreconditionError:
                # The object was replaced meanwhile, possibly by the same content: check it again.
                continue

    def _check(self, content: StoredContent, version: ObjectVersion) -> None:
        known = (version, content.sha256)
        with self._lock:
            if known in self._matched:
                self._matched.move_to_end(known)
                return
        digest = hashlib.sha256()
        if version.size == content.size:
            for piece in self._storage.read(content.key, version=version):
                digest.update(piece)
        if version.size != content.size or digest.hexdigest() != content.sha256:
            raise DamagedContent("the object does not match its hash")
        with self._lock:
            self._matched[known] = None
            while len(self._matched) > MOST_REMEMBERED:
                self._matched.popitem(last=False)
