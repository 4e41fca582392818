"""Declared tables, and the upload of their rows."""

import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from scrim.blocking import blocking, blocking_each
from scrim.display import Follow, following
from scrim.errors import DatasetRejected, UnusableInput, WaitedTooLong
from scrim.frames import Frame, kind_of, write_frame
from scrim.records import Dataset, Population, Progress, SavedSchema
from scrim.transport import Transport, idempotent
from scrim.values import AnySchema, plain
from scrim.wire import PIECE_BYTES

INGEST_POLL_SECONDS = 0.3
"""Interval between two looks at the state of an ingest."""
UPLOAD_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".parquet": "application/vnd.apache.parquet",
}
TABLES_OF_LEVELS = ("groups", "individuals")

Data: TypeAlias = "str | PathLike[str] | Frame"
"""A CSV, gzip or Parquet file, or a data frame of pandas, polars or pyarrow."""


class AsyncDatasets:
    """Declared tables; for curators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._wire = transport.wire

    async def upload(
        self,
        data: "Data | Mapping[str, Data]",
        *,
        schema: AnySchema | SavedSchema,
        population: Population | str | None = None,
        provenance: str | None = None,
        name: str | None = None,
        wait: bool = True,
        progress: Follow = True,
    ) -> Dataset:
        """Declare a dataset, send its rows, and wait until they are read.

        `data` is a file or a data frame; for two-level data both, by `groups` and `individuals`.
        `schema` may be a saved one.
        Private rows name their `population` (or its id). Public ones name their `provenance`, which
        states that none of the protected people is in them.
        """
        tables = _tables_of(data)
        title = name or _name_of(next(iter(tables.values())))
        if (population is None) == (provenance is None):
            raise UnusableInput("give population= for private rows, or provenance= for public ones")
        if population is not None:
            owner = population.id if isinstance(population, Population) else population
            dataset = await self.create(title, schema, population_id=owner)
        else:
            dataset = await self.create_public(title, schema, provenance=provenance or "")
        for level, table in tables.items():
            dataset = await self.upload_content(dataset.id, table, table=level, progress=progress)
        return await self.wait(dataset.id, progress=progress is True) if wait else dataset

    async def create(
        self,
        name: str,
        schema: AnySchema | SavedSchema,
        *,
        population_id: str,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Declare a private dataset; its content is uploaded afterwards."""
        body = {"name": name, "population_id": population_id, "visibility": "private"}
        return await self._create(body | _declaration(schema), idempotency_key)

    async def create_public(
        self,
        name: str,
        schema: AnySchema | SavedSchema,
        *,
        provenance: str,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Declare a public dataset, and state that none of the protected people is in it."""
        body = {"name": name, "visibility": "public", "provenance": provenance}
        stated = {"disjoint_from_population": True, **_declaration(schema)}
        return await self._create(body | stated, idempotency_key)

    async def upload_content(
        self,
        dataset_id: str,
        data: Data,
        *,
        table: str | None = None,
        progress: Follow = True,
    ) -> Dataset:
        """Stream the rows of a declared dataset; `progress` receives the number of bytes sent.

        Two-level data is two tables: `table` says whether it is the `groups` or the `individuals`.
        """
        async with self._file_of(data) as path:
            size = path.stat().st_size
            with following(progress, f"Uploading {_name_of(data)}", in_bytes=True) as follow:
                answer = await self._transport.send(
                    "PUT",
                    f"/v1/datasets/{dataset_id}/content",
                    params={"table": table} if table else {},
                    headers={"Content-Type": media_type_of(path), "Content-Length": str(size)},
                    content=self._wire.body(_Pieces(path, size, follow)),
                    # Not repeatable: once the content has arrived, the dataset accepts no other.
                    repeatable=False,
                )
        return Dataset.model_validate(answer.json())

    async def wait(
        self, dataset_id: str, *, progress: bool = True, timeout: float = 3600
    ) -> Dataset:
        """Wait until the rows are read; DatasetRejected if they do not fit the schema."""
        deadline = time.monotonic() + timeout
        # The service reports no progress of ingestion: it would reveal the number of rows.
        with following(progress, "Reading the rows against the schema"):
            while (dataset := await self.get(dataset_id)).state == "ingesting":
                if time.monotonic() > deadline:
                    raise WaitedTooLong(
                        f"dataset {dataset_id} is still being read; the job continues"
                    )
                await self._wire.pause(INGEST_POLL_SECONDS)
        if dataset.state != "ready":
            raise DatasetRejected(dataset)
        return dataset

    def list(self) -> AsyncGenerator[Dataset, None]:
        """All datasets, newest first."""
        return self._transport.pages("/v1/datasets", Dataset)

    async def get(self, dataset_id: str) -> Dataset:
        """One dataset."""
        return await self._transport.get(f"/v1/datasets/{dataset_id}", Dataset)

    async def delete(self, dataset_id: str) -> None:
        """Destroy the rows; what was spent on them stays spent."""
        await self._transport.send("DELETE", f"/v1/datasets/{dataset_id}")

    async def _create(self, body: dict[str, Any], idempotency_key: str | None) -> Dataset:
        headers = idempotent(idempotency_key)
        return await self._transport.post("/v1/datasets", Dataset, json=body, headers=headers)

    @asynccontextmanager
    async def _file_of(self, data: Data) -> AsyncIterator[Path]:
        """The given file, or a temporary file with the frame that only this user can read."""
        if isinstance(data, str | PathLike):
            yield checked_file(Path(data))
            return
        with tempfile.TemporaryDirectory(prefix="scrim-upload-") as folder:
            path = Path(folder) / "table.parquet"
            await self._wire.work(write_frame, data, path)
            yield path


class Datasets:
    """Declared tables; for curators."""

    def __init__(self, calls: AsyncDatasets) -> None:
        self._calls = calls

    upload = blocking(AsyncDatasets.upload)
    create = blocking(AsyncDatasets.create)
    create_public = blocking(AsyncDatasets.create_public)
    upload_content = blocking(AsyncDatasets.upload_content)
    wait = blocking(AsyncDatasets.wait)
    list = blocking_each(AsyncDatasets.list)
    get = blocking(AsyncDatasets.get)
    delete = blocking(AsyncDatasets.delete)


def media_type_of(path: Path) -> str:
    """The format of a file, by the end of its name."""
    try:
        return UPLOAD_MEDIA_TYPES[path.suffix.lower()]
    except KeyError:
        known = ", ".join(UPLOAD_MEDIA_TYPES)
        raise UnusableInput(f"{path.name}: the name must end in one of {known}") from None


def _tables_of(data: "Data | Mapping[str, Data]") -> dict[str | None, Data]:
    """The tables by level; a single table has no level. Checked before anything is sent."""
    tables: dict[str | None, Data]
    if not isinstance(data, Mapping):
        tables = {None: data}
    elif set(data) == set(TABLES_OF_LEVELS):
        tables = {level: data[level] for level in TABLES_OF_LEVELS}
    else:
        raise UnusableInput("give one table, or two by name: groups and individuals")
    for table in tables.values():
        if isinstance(table, str | PathLike):
            checked_file(Path(table))
        else:
            kind_of(table)
    return tables


def _declaration(schema: AnySchema | SavedSchema) -> dict[str, Any]:
    """The schema itself, or the id of a saved one."""
    if isinstance(schema, SavedSchema):
        return {"schema_id": schema.id}
    return {"schema": plain(schema)}


def checked_file(path: Path) -> Path:
    """Check that a file exists and has a known format."""
    if not path.is_file():
        raise UnusableInput(f"{path} is not a file")
    media_type_of(path)
    return path


def _name_of(data: Data) -> str:
    return Path(data).name if isinstance(data, str | PathLike) else "data frame"


class _Pieces:
    """A file in pieces, read from its start each time it is sent."""

    def __init__(self, path: Path, size: int, follow: Callable[[Progress], None]) -> None:
        self._path = path
        self._size = size
        self._follow = follow

    def __iter__(self) -> Iterator[bytes]:
        sent = 0
        with self._path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
                sent += len(piece)
                self._follow(Progress(done=sent, total=self._size))
