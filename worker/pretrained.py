"""What was learnt from public data, kept in the storage for every worker's next release."""

from dataclasses import dataclass

from service.data.storage import Storage

PRETRAINED = "pretrained"
"""Where the storage keeps it. It holds nothing private, so it is not encrypted."""


@dataclass(frozen=True)
class StoredCache:
    """A cache of networks by a hash of everything that they were trained on."""

    storage: Storage

    def get(self, key: str) -> bytes | None:
        """What was put there, if anything was."""
        try:
            return b"".join(self.storage.read(f"{PRETRAINED}/{key}"))
        except FileNotFoundError:
            return None

    def put(self, key: str, content: bytes) -> None:
        """Remember; two workers that learn the same write the same."""
        self.storage.write(f"{PRETRAINED}/{key}", [content])
