"""A chunk: some rows of a table as one numpy array per declared column, and its form on disk.

Errors of everything that reads, writes or holds tables:

    ValueError
    └── TableError      a file or table does not fit its declared schema, or cannot be read

A TableError names a column, a problem and a fix. It never contains a cell's value, a row's text or a
line number, and neither does any exception chained to it: Arrow's own messages quote rows, so they are
discarded, and the TableError is raised outside the `except` block.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[Any]

Chunk = Mapping[str, Array]
"""One array per declared column, all of the same length.

categorical, boolean, code: the index of the text, in the smallest unsigned type; kinds of missing values
come after the texts.
integer, ordinal, date, datetime: the number on the column's line minus the lowest one, in the smallest
unsigned type; kinds of missing values come after the range.
real: the value itself, as float64; missing is NaN, always with the same bits; other kinds of missing
values are the numbers of synth/missing.py.
identifier: 16 bytes of BLAKE2b of the text; missing is sixteen zero bytes.
"""

DIGEST = np.dtype("V16")
_ARROW_DIGEST = pa.binary(16)


class TableError(ValueError):
    """A structural problem of a file or table, described without any value from its rows."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


def smallest_unsigned(largest: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds `largest`."""
    return np.min_scalar_type(max(0, largest))


def arrow_type(dtype: np.dtype[Any]) -> Any:
    """The Arrow type that stores a chunk's column without conversion."""
    return _ARROW_DIGEST if dtype == DIGEST else pa.from_numpy_dtype(dtype)


def chunk_to_batch(chunk: Chunk) -> Any:
    """The chunk as an Arrow record batch."""
    arrays = [
        pa.array(np.ascontiguousarray(column), arrow_type(column.dtype))
        for column in chunk.values()
    ]
    return pa.RecordBatch.from_arrays(arrays, list(chunk))


def batch_to_chunk(batch: Any) -> Chunk:
    """The record batch as a chunk of read-only views on the batch's own memory."""
    return {
        name: _view(array) for name, array in zip(batch.schema.names, batch.columns, strict=True)
    }


def _view(array: Any) -> Array:
    if array.null_count:
        raise TableError("the stored chunk has nulls, so it was not written by this program")
    if array.type != _ARROW_DIGEST:
        return np.asarray(array.to_numpy(zero_copy_only=True))
    if not len(array):
        return np.empty(0, DIGEST)
    start = array.offset * DIGEST.itemsize
    return np.frombuffer(array.buffers()[1], DIGEST, count=len(array), offset=start)


def chunk_to_bytes(chunk: Chunk) -> bytes:
    """The chunk as an Arrow IPC stream."""
    batch = chunk_to_batch(chunk)
    sink = pa.BufferOutputStream()
    # Never compressed: the length may reveal the number of rows, but not their content.
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def chunk_from_bytes(data: bytes) -> Chunk:
    """Read the output of `chunk_to_bytes`, as views on the same bytes."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            batch = reader.read_next_batch()
        batch.validate()
        return batch_to_chunk(batch)
    except MemoryError:
        raise  # also Arrow's own memory errors: the bytes are not at fault
    except (pa.ArrowException, OSError, StopIteration):
        pass
    raise TableError("the stored chunk is damaged; ingest the dataset again")
