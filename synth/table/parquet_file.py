"""Parquet files, read into chunks and written from them, a bounded piece at a time."""

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from synth.spec.schema import Schema
from synth.table.chunk import Chunk, TableError
from synth.table.encoding import attribute_codec, codec_of, locate_columns

Source = str | PathLike[str] | BinaryIO

CHUNK_ROWS = 2**18
SCHEMA_KEY = b"scrim.schema"
"""Where a written file keeps its schema as JSON."""
_BUFFER_BYTES = 2**20

# A damaged name of a column shows as a UnicodeDecodeError.
_ARROW_FAULTS = (pa.ArrowException, OSError, UnicodeDecodeError)
_DAMAGED = "the file is not Parquet, or is damaged or encrypted; write and upload it again"


def read_parquet(
    source: Source, schema: Schema, *, chunk_rows: int = CHUNK_ROWS
) -> Iterator[Chunk]:
    """The rows of a Parquet file as chunks of the declared columns. The source must be seekable."""
    if chunk_rows < 1:
        raise ValueError("chunk_rows must be at least 1")
    codecs = [codec_of(column) for column in schema.columns]
    with _open(source) as file:
        locate_columns(schema, file.schema_arrow.names)
        batches = file.iter_batches(chunk_rows, columns=[codec.column.name for codec in codecs])
        while (batch := _next(batches)) is not None:
            yield {
                codec.column.name: codec.encode(batch.column(codec.column.name)) for codec in codecs
            }


def _open(source: Source) -> Any:
    if isinstance(source, str | PathLike):
        source = Path(source)
    elif not source.seekable():
        raise TableError("a Parquet file is read from its end; give a source that can be searched")
    try:
        # Small buffers and no read-ahead: a row group may be larger than the memory.
        return pq.ParquetFile(
            source,
            pre_buffer=False,
            buffer_size=_BUFFER_BYTES,
            page_checksum_verification=True,
        )
    except _ARROW_FAULTS as error:
        if _is_the_systems(error):
            raise
    raise TableError(_DAMAGED)


def _next(batches: Iterator[Any]) -> Any:
    """The next batch, or none at the end."""
    try:
        batch = next(batches, None)
        if batch is not None:
            batch.validate()
        return batch
    except _ARROW_FAULTS as error:
        if _is_the_systems(error):
            raise
    raise TableError(_DAMAGED)


def _is_the_systems(error: Exception) -> bool:
    """Whether the disk or the source failed, rather than Arrow over what it read."""
    return isinstance(error, OSError) and error.errno is not None


def write_parquet(destination: Source, schema: Schema, chunks: Iterable[Chunk]) -> None:
    """The chunks as a Parquet file of the released columns; missing is null."""
    codecs = [attribute_codec(column) for column in schema.attributes]
    fields = [(codec.column.name, codec.arrow_type) for codec in codecs]
    metadata = {SCHEMA_KEY: schema.model_dump_json().encode()}
    layout = pa.schema(fields, metadata=metadata)
    target = Path(destination) if isinstance(destination, str | PathLike) else destination
    with pq.ParquetWriter(target, layout) as writer:
        for chunk in chunks:
            arrays = [codec.decode(chunk[codec.column.name]) for codec in codecs]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=layout))
