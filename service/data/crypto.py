"""Encryption at rest: one random data key per dataset, wrapped by the master key.

A dataset cannot be read without its wrapped key, so destroying that key destroys the data,
including all copies of the objects.

A stored object is a header (8 bytes of format, 32 of salt) and chunks of AES-256-GCM. Salt and
purpose give every object a key of its own, so the chunk's number can be its nonce. The associated
data of a chunk holds its number and whether it is the last one: a chunk that is missing, moved,
repeated or taken from another object does not decrypt.

    CryptoError
    ├── Unreadable        not encrypted with this key for this purpose, or changed since
    └── WrongMasterKey    not the key that the stored data keys are wrapped by
"""

import secrets
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
CHUNK_BYTES = 2**18
"""Plain bytes of a chunk: decrypting a stream needs no more memory than a few of them."""

_FORMAT = b"scrimenc"
_SALT_BYTES = 32
_HEADER_BYTES = len(_FORMAT) + _SALT_BYTES
_NONCE_BYTES = 12
_TAG_BYTES = 16
_SEALED_BYTES = CHUNK_BYTES + _TAG_BYTES
_WRAPPED = b"scrim-data-key-1"


class CryptoError(Exception):
    """Base class of encryption errors."""


class Unreadable(CryptoError):
    """Not encrypted with this key for this purpose, or changed since."""


class WrongMasterKey(CryptoError):
    """Not the key that the stored data keys are wrapped by."""


def new_data_key() -> bytes:
    """Generate a random key for one dataset."""
    return secrets.token_bytes(KEY_BYTES)


def wrap_key(data_key: bytes, dataset_id: UUID, *, master_key: bytes) -> bytes:
    """Encrypt a data key for storage; it can be unwrapped for this dataset only."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(master_key).encrypt(nonce, data_key, _WRAPPED + dataset_id.bytes)


def unwrap_key(wrapped: bytes, dataset_id: UUID, *, master_key: bytes) -> bytes:
    """Decrypt the data key of a dataset."""
    nonce, sealed = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
    try:
        return AESGCM(master_key).decrypt(nonce, sealed, _WRAPPED + dataset_id.bytes)
    except (InvalidTag, ValueError):
        raise Unreadable("the data key is not wrapped by this master key") from None


class Encryptor:
    """Encrypts one object, piece by piece. `purpose` is public, and needed again to read it."""

    def __init__(self, data_key: bytes, *, purpose: str) -> None:
        salt = secrets.token_bytes(_SALT_BYTES)
        self._cipher = _object_cipher(data_key, salt, purpose)
        self._ready = _FORMAT + salt
        self._rest = bytearray()
        self._chunks = 0

    def update(self, data: bytes) -> bytes:
        """Add plain bytes; returns the bytes that are ready to be stored, possibly none."""
        self._rest += data
        # A full chunk is kept until the next byte arrives: it might be the last chunk.
        while len(self._rest) > CHUNK_BYTES:
            self._seal(CHUNK_BYTES, is_last=False)
        return self._take()

    def finish(self) -> bytes:
        """The end of the object."""
        self._seal(len(self._rest), is_last=True)
        return self._take()

    def _seal(self, length: int, *, is_last: bool) -> None:
        nonce, about = _place(self._chunks, is_last=is_last)
        self._ready += self._cipher.encrypt(nonce, bytes(self._rest[:length]), about)
        del self._rest[:length]
        self._chunks += 1

    def _take(self) -> bytes:
        ready, self._ready = self._ready, b""
        return ready


class Decryptor:
    """Decrypts what an Encryptor wrote. The object is complete only if `finish` returns."""

    def __init__(self, data_key: bytes, *, purpose: str) -> None:
        self._data_key = data_key
        self._purpose = purpose
        self._cipher: AESGCM | None = None
        self._rest = bytearray()
        self._chunks = 0

    def update(self, data: bytes) -> bytes:
        """Add stored bytes; returns the bytes that could be decrypted, possibly none."""
        self._rest += data
        if self._cipher is None:
            if len(self._rest) < _HEADER_BYTES:
                return b""
            self._read_header()
        plain = bytearray()
        while len(self._rest) > _SEALED_BYTES:
            plain += self._open(_SEALED_BYTES, is_last=False)
        return bytes(plain)

    def finish(self) -> bytes:
        """The end of the object; Unreadable if it is not the end that was written."""
        return self._open(len(self._rest), is_last=True)

    def _read_header(self) -> None:
        if not self._rest.startswith(_FORMAT):
            raise Unreadable("the object is not in the expected format")
        salt = bytes(self._rest[len(_FORMAT) : _HEADER_BYTES])
        self._cipher = _object_cipher(self._data_key, salt, self._purpose)
        del self._rest[:_HEADER_BYTES]

    def _open(self, length: int, *, is_last: bool) -> bytes:
        nonce, about = _place(self._chunks, is_last=is_last)
        if self._cipher is None:
            raise Unreadable("the object ends within its header")
        try:
            plain = self._cipher.decrypt(nonce, bytes(self._rest[:length]), about)
        except InvalidTag:
            raise Unreadable("the object was changed, truncated or taken from elsewhere") from None
        del self._rest[:length]
        self._chunks += 1
        return plain


async def encrypt_stream(
    data_key: bytes, pieces: AsyncIterable[bytes], *, purpose: str
) -> AsyncIterator[bytes]:
    """Encrypt bytes as they arrive."""
    encryptor = Encryptor(data_key, purpose=purpose)
    async for piece in pieces:
        if ready := encryptor.update(piece):
            yield ready
    yield encryptor.finish()


def encrypt_pieces(data_key: bytes, pieces: Iterable[bytes], *, purpose: str) -> Iterator[bytes]:
    """Encrypt an iterable of bytes, piece by piece."""
    encryptor = Encryptor(data_key, purpose=purpose)
    for piece in pieces:
        if ready := encryptor.update(piece):
            yield ready
    yield encryptor.finish()


def decrypt_pieces(data_key: bytes, pieces: Iterable[bytes], *, purpose: str) -> Iterator[bytes]:
    """Decrypt an iterable of bytes, piece by piece; a truncated object fails at its end."""
    decryptor = Decryptor(data_key, purpose=purpose)
    for piece in pieces:
        if plain := decryptor.update(piece):
            yield plain
    yield decryptor.finish()


def upload_purpose(table: str) -> str:
    """The purpose of an uploaded table, so that one table cannot be substituted for another."""
    return f"upload:{table}"


def _object_cipher(data_key: bytes, salt: bytes, purpose: str) -> AESGCM:
    derivation = HKDF(SHA256(), KEY_BYTES, salt=salt, info=b"scrim-object-1:" + purpose.encode())
    return AESGCM(derivation.derive(data_key))


def _place(number: int, *, is_last: bool) -> tuple[bytes, bytes]:
    """Nonce and associated data of a chunk."""
    index = number.to_bytes(_NONCE_BYTES, "big")
    return index, index + (b"\x01" if is_last else b"\x00")
