"""Folders that belong to one process at a time, and secrets kept in them."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.embedded.errors import FolderInUseError
from service.embedded.process import SystemAccount


def make_private_folder(folder: Path, owner: SystemAccount | None = None) -> None:
    """Create a folder that only its owner may enter; leave an existing one as it is."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.exists():
        return
    folder.mkdir(mode=0o700)
    if owner is not None:
        os.chown(folder, owner.uid, owner.gid)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the kernel releases it when the process ends, however it ends."""
    make_private_folder(folder)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode().strip() or "unknown"
            raise FolderInUseError(
                f"{folder} is in use by another process (pid {holder}): "
                "stop that one, or choose another data folder."
            ) from None
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def keep_secret(path: Path, owner: SystemAccount | None = None) -> str:
    """Return the secret in this file; create the file with a random secret the first time."""
    if not path.exists():
        draft = path.with_suffix(".new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(24) + "\n")
            if owner is not None:
                os.fchown(descriptor, owner.uid, owner.gid)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
    return path.read_text().strip()
