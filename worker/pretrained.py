"""Networks trained on public data, kept in the storage for later releases of any worker."""

from dataclasses import dataclass

from service.data.storage import Storage

PRETRAINED = "pretrained"
"""Prefix of the networks in the storage. They hold nothing private, so they are not encrypted."""


@dataclass(frozen=True)
class StoredCache:
    """A cache of networks by a hash of all their training inputs."""

    storage: Storage

    def get(self, key: str) -> bytes | None:
        """The stored network, or None."""
        try:
            return b"".join(self.storage.read(f"{PRETRAINED}/{key}"))
        except FileNotFoundError:
            return None

    def put(self, key: str, content: bytes) -> None:
        """Store a network; two workers with the same inputs write the same content."""
        self.storage.write(f"{PRETRAINED}/{key}", [content])
