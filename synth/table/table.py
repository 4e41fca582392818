"""A table: rows of a declared schema, in chunks that need not be in memory together."""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from scrim.spec.columns import IdentifierColumn
from scrim.spec.schema import Attribute, Schema
from synth.table.chunk import (
    Array,
    Chunk,
    TableError,
    arrow_type,
    batch_to_chunk,
    chunk_to_batch,
)
from synth.table.encoding import AttributeCodec, attribute_codec, codec_of, require_bins
from synth.table.linking import edges_of_groups
from synth.table.people import choose_rows

_ENCODING_KEY = b"scrim.encoding"


class Table:
    """Rows of a declared schema. Their number is private, so a table has no length."""

    def __init__(self, schema: Schema, chunks: Iterable[Chunk]) -> None:
        if isinstance(chunks, Iterator):
            raise TypeError("chunks are read several times; give a list or another re-iterable")
        self._schema = schema
        self._chunks = chunks
        self._dtypes = {column.name: codec_of(column).dtype for column in schema.columns}
        # Kept, because a codec makes its lookup table once, and a table is read in every round.
        self._codecs = {column.name: attribute_codec(column) for column in schema.attributes}

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self._schema

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows, one chunk at a time."""
        for chunk in self._chunks:
            _check_chunk(chunk, self._dtypes)
            yield chunk

    def project(self, schema: Schema) -> "Table":
        """The same rows with only the columns of `schema`, which are some of this table's."""
        return Table(schema, _ProjectedChunks(self, [column.name for column in schema.columns]))

    def use_bins(self, schema: Schema) -> None:
        """Read the rows by the bins of `schema`, which declares the same columns. How numbers are stored does
        not depend on their bins."""
        if schema.names != self._schema.names:
            raise TableError("only the bins of a table's columns may change")
        self._schema = schema
        self._codecs = {column.name: attribute_codec(column) for column in schema.attributes}

    def codes(self, names: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Yield, for each chunk, the discrete codes of the named attributes; numbers as their bins."""
        return (codes for codes, _ in self.read(codes=names, numbers=()))

    def read(
        self, *, codes: Sequence[str], numbers: Sequence[str]
    ) -> Iterator[tuple[dict[str, Array], dict[str, Array]]]:
        """Yield, for each chunk, the discrete codes of some attributes and the numbers of others.

        A category's number is its code; a missing number is NaN. For linked rows, the codes of the key
        are the first row of each group in the chunk, and the end of the last group.
        """
        key = self._schema.key
        edges = [name for name in codes if name == key]
        coding = {name: self._discrete_codec(name) for name in codes if name != key}
        numbering = {name: self._codecs[_attribute(self._schema, name).name] for name in numbers}

        def read() -> Iterator[tuple[dict[str, Array], dict[str, Array]]]:
            for chunk in self.chunks():
                starts = {name: edges_of_groups(chunk[name]) for name in edges}
                yield (
                    starts
                    | {name: codec.discretise(chunk[name]) for name, codec in coding.items()},
                    {name: codec.numbers(chunk[name]) for name, codec in numbering.items()},
                )

        # The names are checked at the call, before anything is read.
        return read()

    def _discrete_codec(self, name: str) -> AttributeCodec:
        column = _attribute(self._schema, name)
        require_bins(column)
        return self._codecs[name]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table as an Arrow IPC file, chunk by chunk."""
        layout = _layout(self._dtypes, self._schema)
        with Path(path).open("wb") as file, pa.ipc.new_file(file, layout) as writer:
            for chunk in self.chunks():
                batch = chunk_to_batch({name: chunk[name] for name in self._dtypes})
                writer.write_batch(batch.replace_schema_metadata(layout.metadata))

    @classmethod
    def open(cls, path: str | PathLike[str], schema: Schema) -> Self:
        """Open a saved table, memory-mapped: its chunks are views on the file."""
        table = cls(schema, _SavedChunks(Path(path)))
        expected = _layout(table._dtypes, schema)
        with _open_saved(Path(path)) as reader:
            if not reader.schema.equals(expected, check_metadata=True):
                raise TableError(
                    "the saved table was encoded with another schema; "
                    "ingest the file again with this one"
                )
        return table


class _ProjectedChunks:
    """Some columns of a table's chunks; each iteration reads them again."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self._table = table
        self._names = names

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in self._table.chunks():
            yield {name: chunk[name] for name in self._names}


def _attribute(schema: Schema, name: str) -> Attribute:
    for column in schema.attributes:
        if column.name == name:
            return column
    raise TableError(f"column {name!r} is not an attribute of the schema; name a declared one")


def _check_chunk(chunk: Chunk, dtypes: dict[str, np.dtype[Any]]) -> None:
    if chunk.keys() != dtypes.keys():
        raise TableError("a chunk does not have exactly the declared columns")
    for name, dtype in dtypes.items():
        if chunk[name].dtype != dtype:
            raise TableError(
                f"column {name!r} of a chunk has type {chunk[name].dtype}, not {dtype}"
            )
    if len({len(column) for column in chunk.values()}) > 1:
        raise TableError("the columns of a chunk differ in length")


def _layout(dtypes: dict[str, np.dtype[Any]], schema: Schema) -> Any:
    """The Arrow schema of a saved table, with the parts of the declaration that define its codes."""
    # Bins, decimals and rules may be redeclared without encoding the rows again.
    free: Any = {"columns": {"__all__": {"bins", "decimals"}}, "rules": True}
    encoding = schema.model_dump_json(exclude=free)
    fields = [(name, arrow_type(dtype)) for name, dtype in dtypes.items()]
    return pa.schema(fields, metadata={_ENCODING_KEY: encoding.encode()})


class _SavedChunks:
    """The chunks of a saved table; each iteration maps the file again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[Chunk]:
        with _open_saved(self._path) as reader:
            for index in range(reader.num_record_batches):
                yield batch_to_chunk(_saved_batch(reader, index))


def _open_saved(path: Path) -> Any:
    source = pa.memory_map(str(path))
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowException:
        pass
    raise TableError("the file is not a saved table, or was not written to its end; save it again")


def _saved_batch(reader: Any, index: int) -> Any:
    try:
        batch = reader.get_batch(index)
        batch.validate()
        return batch
    except (pa.ArrowException, OSError):
        pass
    raise TableError("the saved table is damaged; save it again")


def limit_rows(
    table: Table, identifier: str, max_rows: int, key: bytes, *, group: str | None = None
) -> Table:
    """Limit the table to `max_rows` rows per person, chosen by keyed hashes.

    If a person is the unit of linked tables, pass the column with the key of the rows' groups as `group`:
    then the groups in which a person keeps rows do not depend on the content of the rows.
    """
    names = [c.name for c in table.schema.columns if isinstance(c, IdentifierColumn)]
    for name in (identifier, group):
        if name is not None and name not in names:
            raise TableError(f"column {name!r} is not declared as an identifier")
    if max_rows < 1:
        raise ValueError("max_rows must be at least 1")
    if not key:
        raise ValueError("the key must not be empty")
    kept = choose_rows(table.chunks(), identifier, max_rows=max_rows, key=key, group=group)
    return Table(table.schema, _KeptChunks(table, kept))


class _KeptChunks:
    """The chosen rows of a table's chunks, selected as the chunks are read."""

    def __init__(self, table: Table, kept: Sequence[npt.NDArray[np.bool_]]) -> None:
        self._table = table
        self._kept = kept

    def __iter__(self) -> Iterator[Chunk]:
        for chunk, keep in zip(self._table.chunks(), self._kept, strict=True):
            yield {name: column[keep] for name, column in chunk.items()}
