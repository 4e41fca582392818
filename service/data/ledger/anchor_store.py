"""Where the anchor is kept: in a file, or as an object in S3, behind one interface.

Writers hold a lock of the database. A writer that is disconnected from the database loses that lock
without notice and may write late. So a document is replaced only if it is still the one that the
writer has read, and the anchor never goes back.
"""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import ObjectStore, S3Store

from service.data.ledger.errors import AnchorMoved, AnchorUnreachable

# Few retries: a caller waits for the answer, and a job that could not anchor is retried anyway.
_PATIENCE = timedelta(seconds=10)


@dataclass(frozen=True)
class Anchored:
    """A stored document and its version."""

    document: bytes
    version: str


class AnchorStore(Protocol):
    """A place outside the database for one small document."""

    def read(self) -> Anchored | None:
        """The document, or None if there is none yet."""

    def replace(self, known: Anchored | None, document: bytes) -> None:
        """Replace `known` by `document` atomically, and return when it is on stable storage.

        AnchorMoved if the stored document is no longer `known`; None: there must be none yet.
        """


def open_anchor_store(url: str) -> AnchorStore:
    """The store at `file:///path/to/anchor.json` or `s3://bucket/key`.

    S3 takes its endpoint, region and credentials from the usual AWS_* variables.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return FileAnchorStore(Path(unquote(parts.path)))
    bucket = S3Store(parts.netloc, retry_config={"retry_timeout": _PATIENCE})
    return ObjectAnchorStore(bucket, parts.path.strip("/"))


class FileAnchorStore:
    """The anchor as a file; its folder must not be part of the database's backups."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Anchored | None:
        """The file's content, or None if there is no file."""
        try:
            document = self._path.read_bytes()
        except FileNotFoundError:
            return None
        return Anchored(document, hashlib.sha256(document).hexdigest())

    def replace(self, known: Anchored | None, document: bytes) -> None:
        """Compare and write under a file lock."""
        with _exclusive(self._path.with_name(f".{self._path.name}.lock")):
            if self.read() != known:
                raise AnchorMoved("another process has written the anchor meanwhile")
            self._write(document)

    def _write(self, document: bytes) -> None:
        """Write beside the file, then rename: a crash leaves the old or the new one."""
        descriptor, draft = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(document)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(self._path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
        _sync_folder(self._path.parent)


class ObjectAnchorStore:
    """The anchor as an object, for workers on several machines."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        self._store = store
        self._key = key

    def read(self) -> Anchored | None:
        """The object's content, or None if there is no object."""
        with _reached():
            try:
                found = obstore.get(self._store, self._key)
            except FileNotFoundError:
                return None
            return Anchored(bytes(found.bytes()), found.meta["e_tag"] or "")

    def replace(self, known: Anchored | None, document: bytes) -> None:
        """Write the object conditionally; the object store checks, so concurrent writers are safe."""
        with _reached():
            try:
                obstore.put(
                    self._store,
                    self._key,
                    document,
                    mode="create" if known is None else {"e_tag": known.version},
                )
            except (AlreadyExistsError, PreconditionError):
                raise AnchorMoved("another process has written the anchor meanwhile") from None


@contextmanager
def _reached() -> Iterator[None]:
    """Turn failures of the object store into AnchorUnreachable."""
    try:
        yield
    except (BaseError, OSError) as error:
        raise AnchorUnreachable("the object store of the anchor cannot be used") from error


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file; the kernel releases it when the process ends, however it ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
