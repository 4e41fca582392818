"""Encryption at rest: what was written is read back, and nothing else decrypts."""

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.data.crypto import (
    CHUNK_BYTES,
    Unreadable,
    decrypt_pieces,
    encrypt_pieces,
    encrypt_stream,
    new_data_key,
    unwrap_key,
    wrap_key,
)

SEALED = CHUNK_BYTES + 16
HEADER = 40
LENGTHS = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES]


def encrypt(key: bytes, plain: bytes, purpose: str = "p", piece: int = 100_000) -> bytes:
    pieces = [plain[i : i + piece] for i in range(0, len(plain), piece)]
    return b"".join(encrypt_pieces(key, pieces, purpose=purpose))


def decrypt(key: bytes, stored: bytes, purpose: str = "p", piece: int = 70_001) -> bytes:
    pieces = [stored[i : i + piece] for i in range(0, len(stored), piece)]
    return b"".join(decrypt_pieces(key, pieces, purpose=purpose))


@pytest.mark.parametrize("length", LENGTHS)
def test_comes_back(length: int) -> None:
    key, plain = new_data_key(), bytes(i % 251 for i in range(length))
    stored = encrypt(key, plain)
    assert decrypt(key, stored) == plain
    assert len(stored) == HEADER + length + 16 * max(1, -(-length // CHUNK_BYTES))


@given(pieces=st.lists(st.binary(max_size=50), max_size=10))
def test_pieces_do_not_matter(pieces: list[bytes]) -> None:
    key = new_data_key()
    stored = b"".join(encrypt_pieces(key, pieces, purpose="p"))
    assert decrypt(key, stored, piece=7) == b"".join(pieces)


def test_asynchronous_form_is_the_same() -> None:
    key = new_data_key()

    async def source() -> AsyncIterator[bytes]:
        yield b"abc"
        yield bytes(2 * CHUNK_BYTES)

    async def collect() -> bytes:
        return b"".join([piece async for piece in encrypt_stream(key, source(), purpose="p")])

    assert decrypt(key, asyncio.run(collect())) == b"abc" + bytes(2 * CHUNK_BYTES)


def test_same_content_never_looks_the_same() -> None:
    key = new_data_key()
    assert encrypt(key, b"same")[HEADER:] != encrypt(key, b"same")[HEADER:]


def test_chunks_cannot_be_cut_moved_repeated_or_changed() -> None:
    key = new_data_key()
    stored = encrypt(key, bytes(3 * CHUNK_BYTES + 5))
    header, body = stored[:HEADER], stored[HEADER:]
    chunks = [body[i : i + SEALED] for i in range(0, len(body), SEALED)]
    assert len(chunks) == 4
    wrong = [
        b"",
        stored[:10],
        header,
        *(header + b"".join(chunks[:kept]) for kept in range(4)),
        stored[:-1],
        stored + b"x",
        header + chunks[0] + b"".join(chunks),
        *(
            header + b"".join(order)
            for order in itertools.permutations(chunks)
            if list(order) != chunks
        ),
        *(stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :] for at in (0, 20, 50, 600_000)),
    ]
    for each in wrong:
        with pytest.raises(Unreadable):
            decrypt(key, each)


def test_another_key_or_purpose_reads_nothing() -> None:
    key = new_data_key()
    stored = encrypt(key, b"rows", purpose="upload:groups")
    with pytest.raises(Unreadable):
        decrypt(key, stored, purpose="upload:individuals")
    with pytest.raises(Unreadable):
        decrypt(new_data_key(), stored, purpose="upload:groups")


def test_a_wrapped_key_opens_for_its_dataset_and_master_key_only() -> None:
    key, master_key, dataset = new_data_key(), new_data_key(), uuid.uuid4()
    wrapped = wrap_key(key, dataset, master_key=master_key)
    assert key not in wrapped
    assert unwrap_key(wrapped, dataset, master_key=master_key) == key
    attempts: tuple[Callable[[], bytes], ...] = (
        lambda: unwrap_key(wrapped, uuid.uuid4(), master_key=master_key),
        lambda: unwrap_key(wrapped, dataset, master_key=new_data_key()),
        lambda: unwrap_key(wrapped[:-1], dataset, master_key=master_key),
        lambda: unwrap_key(b"", dataset, master_key=master_key),
    )
    for attempt in attempts:
        with pytest.raises(Unreadable):
            attempt()
