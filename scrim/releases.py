"""Releases: preview, submit, follow and download them, and ask the released model."""

import hashlib
import re
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import httpx
from pydantic import PrivateAttr

from scrim.blocking import blocking, blocking_each, of_its_own
from scrim.display import Follow, following
from scrim.errors import (
    DamagedDownload,
    Problem,
    ReleaseFailed,
    Unreachable,
    UnusableInput,
    WaitedTooLong,
)
from scrim.events import EventReader
from scrim.frames import ReleasedTable, read_pandas, read_polars
from scrim.records import Answer, Artifact, Dataset, Event, Preview, Progress, Release
from scrim.transport import Transport, idempotent
from scrim.values import AnySchema, AnyWorkload, ReleaseBody, parse_schema, plain

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

RELEASE_POLL_SECONDS = 0.5
"""Interval between two looks at a release whose events do not arrive."""
# The service sends at least a comment every 15 seconds.
SILENCE_SECONDS = 45.0

PLAIN_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")


class Handle(Release):
    """A release with access to the calls of its client."""

    _home: Any = PrivateAttr(default=None)


AnyRelease = TypeVar("AnyRelease", bound=Handle)


class ReleaseCalls(Generic[AnyRelease]):
    """Releases; curators make them, analysts see published ones."""

    def __init__(self, transport: Transport, kind: type[AnyRelease], *, home: Any) -> None:
        self._transport = transport
        self._wire = transport.wire
        self._kind = kind
        self._home = home

    async def preview(self, body: ReleaseBody) -> Preview:
        """Forecast the cost and the accuracy of a release; uses neither data nor budget.

        The body may have `budgets` to compare and a `target` to reach (scrim.spec.preview).
        """
        return await self._transport.post("/v1/releases/preview", Preview, json=plain(body))

    async def submit(self, body: ReleaseBody, *, idempotency_key: str | None = None) -> AnyRelease:
        """Queue a release. A repetition with the same key returns the same release."""
        headers = idempotent(idempotency_key)
        return await self._post("/v1/releases", json=plain(body), headers=headers)

    async def list(self) -> AsyncGenerator[AnyRelease, None]:
        """The releases that this key may see, newest first."""
        async with aclosing(self._transport.pages("/v1/releases", self._kind)) as releases:
            async for release in releases:
                yield self._bind(release)

    async def get(self, release_id: str) -> AnyRelease:
        """One release."""
        return self._bind(await self._transport.get(f"/v1/releases/{release_id}", self._kind))

    async def cancel(self, release_id: str) -> AnyRelease:
        """Cancel a release; its unspent budget is returned."""
        return await self._post(f"/v1/releases/{release_id}/cancel")

    async def resume(self, release_id: str) -> AnyRelease:
        """Resume a failed release from its journal; what it spent is not charged again."""
        return await self._post(f"/v1/releases/{release_id}/resume")

    async def publish(self, release_id: str) -> AnyRelease:
        """Make a release visible to analysts."""
        return await self._post(f"/v1/releases/{release_id}/publish")

    async def wait(
        self, release_id: str, *, progress: Follow = True, timeout: float | None = None
    ) -> AnyRelease:
        """Wait until a release has succeeded; ReleaseFailed if it ends otherwise.

        Terminals and notebooks show a bar; `progress` turns it off, or is a function that receives progress.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        last_event = 0
        with following(progress, "Selecting, measuring with noise, fitting") as follow:
            while True:
                # If events do not arrive, this loop polls the release.
                with suppress(httpx.TransportError, Problem, Unreachable):
                    async with aclosing(self._signs_of_life(release_id, last_event)) as signs:
                        async for event in signs:
                            _require_time(deadline, release_id)
                            if event is not None:
                                last_event = event.id
                                if event.kind == "progress":
                                    follow(Progress.model_validate(event.data))
                release = await self.get(release_id)
                follow(release.progress)
                if release.is_over:
                    break
                _require_time(deadline, release_id)
                await self._wire.pause(RELEASE_POLL_SECONDS)
        if release.state != "succeeded":
            raise ReleaseFailed(release)
        return release

    async def events(self, release_id: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        """Yield the events of a release as they happen, until it ends or the stream is interrupted."""
        async with aclosing(self._signs_of_life(release_id, after)) as signs:
            async for event in signs:
                if event is not None:
                    yield event

    async def _signs_of_life(
        self, release_id: str, after: int
    ) -> AsyncGenerator[Event | None, None]:
        """Yield events, and None for other lines, which show that the service is still connected."""
        async with self._transport.open(
            "GET",
            f"/v1/releases/{release_id}/events",
            headers={"Last-Event-ID": str(after), "Accept": "text/event-stream"},
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=5.0),
        ) as response:
            reader = EventReader()
            async with aclosing(self._wire.lines(response)) as lines:
                async for line in lines:
                    yield reader.feed(line)

    async def download(
        self, release_id: str, folder: Path | str, *, names: Sequence[str] | None = None
    ) -> dict[str, Path]:
        """Download artifacts, by default all of them, and check their digests."""
        release = await self.get(release_id)
        available = {artifact.name: artifact for artifact in release.artifacts}
        wanted = [*available] if names is None else names
        for name in wanted:
            if name not in available:
                raise DamagedDownload(
                    f"release {release_id} has no artifact {name!r}; it has "
                    f"{', '.join(available) or 'none'}"
                )
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        return {name: await self._fetch(release_id, available[name], target) for name in wanted}

    async def to_pandas(
        self,
        release_id: str,
        *,
        table: str | None = None,
        draw: int | None = None,
        schema: AnySchema | None = None,
    ) -> "pd.DataFrame":
        """Return the synthetic rows as a pandas frame, typed as declared: see `to_polars`."""
        async with self._released_table(release_id, table, draw, schema) as found:
            return await self._wire.work(read_pandas, found)

    async def to_polars(
        self,
        release_id: str,
        *,
        table: str | None = None,
        draw: int | None = None,
        schema: AnySchema | None = None,
    ) -> "pl.DataFrame":
        """Return the synthetic rows as a polars frame, typed as declared.

        Two-level data has two frames: `table` is `groups` or `individuals`. `draw` is the number of a
        further set of rows, from 1, if the release has some (`outputs.draws`). Parquet files contain
        their schema. For a release with only CSV files it is read from the dataset, which analysts
        may not see: they pass it as `schema`.
        """
        async with self._released_table(release_id, table, draw, schema) as found:
            return await self._wire.work(read_polars, found)

    async def answers(self, release_id: str, workload: AnyWorkload) -> Sequence[Answer]:
        """Ask the released model, at no cost; for analysts."""
        body = {"workload": plain([*workload])}
        answer = await self._transport.send("POST", f"/v1/releases/{release_id}/answers", json=body)
        return [Answer.model_validate(item) for item in answer.json()["items"]]

    async def samples(self, release_id: str, rows: int) -> str:
        """Draw rows (groups, for two-level data) from the released model, as CSV; for analysts."""
        path = f"/v1/releases/{release_id}/samples"
        return (await self._transport.send("POST", path, json={"rows": rows})).text

    async def _post(self, path: str, **options: Any) -> AnyRelease:
        return self._bind(await self._transport.post(path, self._kind, **options))

    def _bind(self, release: AnyRelease) -> AnyRelease:
        release._home = self._home
        return release

    async def _fetch(self, release_id: str, artifact: Artifact, folder: Path) -> Path:
        """Download under a temporary name, then rename: a file that exists is complete."""
        if not PLAIN_NAME.fullmatch(artifact.name):
            raise DamagedDownload(f"{artifact.name!r} is not the name of an artifact")
        path = folder / artifact.name
        draft = folder / f".{artifact.name}.part"
        digest = hashlib.sha256()
        try:
            with draft.open("wb") as file:
                async with aclosing(self._content(release_id, artifact)) as pieces:
                    async for piece in pieces:
                        digest.update(piece)
                        await self._wire.work(file.write, piece)
            if digest.hexdigest() != artifact.sha256:
                raise DamagedDownload(f"{artifact.name} is not what the service announced")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        return path

    async def _content(self, release_id: str, artifact: Artifact) -> AsyncGenerator[bytes, None]:
        path = f"/v1/releases/{release_id}/artifacts/{artifact.name}"
        async with self._transport.open("GET", path) as response:
            try:
                async with aclosing(self._wire.pieces(response)) as pieces:
                    async for piece in pieces:
                        yield piece
            except httpx.TransportError as error:
                raise DamagedDownload(
                    f"the download of {artifact.name} was interrupted; try again"
                ) from error

    @asynccontextmanager
    async def _released_table(
        self, release_id: str, table: str | None, draw: int | None, schema: AnySchema | None
    ) -> AsyncIterator[ReleasedTable]:
        """A temporary file of a released table, and the schema if the file does not contain it."""
        release = await self.get(release_id)
        name = _file_of(release, table, draw)
        declared = None
        if name.endswith(".csv"):
            declared = parse_schema(schema or await self._declared_schema(release))
        with tempfile.TemporaryDirectory(prefix="scrim-download-") as folder:
            paths = await self.download(release_id, folder, names=[name])
            yield ReleasedTable(paths[name], declared)

    async def _declared_schema(self, release: AnyRelease) -> AnySchema:
        try:
            path = f"/v1/datasets/{release.dataset_id}"
            dataset = await self._transport.get(path, Dataset)
        except Problem as problem:
            raise UnusableInput(
                f"release {release.id} has CSV files alone, which do not hold their schema, and this "
                f"key cannot ask for it ({problem.kind}); give it as schema=, or ask for releases "
                "with the format parquet"
            ) from problem
        return dataset.declared_schema or {}


class AsyncReleases(ReleaseCalls["AsyncReleaseHandle"]):
    """Releases; curators make them, analysts see published ones."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, AsyncReleaseHandle, home=self)


class _BlockingCalls(ReleaseCalls["ReleaseHandle"]):
    """The calls behind `Releases`."""


class Releases:
    """Releases; curators make them, analysts see published ones."""

    def __init__(self, transport: Transport) -> None:
        self._calls = _BlockingCalls(transport, ReleaseHandle, home=self)

    preview = blocking(_BlockingCalls.preview)
    submit = blocking(_BlockingCalls.submit)
    list = blocking_each(_BlockingCalls.list)
    get = blocking(_BlockingCalls.get)
    cancel = blocking(_BlockingCalls.cancel)
    resume = blocking(_BlockingCalls.resume)
    publish = blocking(_BlockingCalls.publish)
    wait = blocking(_BlockingCalls.wait)
    events = blocking_each(_BlockingCalls.events)
    download = blocking(_BlockingCalls.download)
    to_pandas = blocking(_BlockingCalls.to_pandas)
    to_polars = blocking(_BlockingCalls.to_polars)
    answers = blocking(_BlockingCalls.answers)
    samples = blocking(_BlockingCalls.samples)


class _AsyncActions:
    """Asynchronous methods of a release; a separate class, or the model would treat them as fields."""

    cancel = of_its_own(AsyncReleases.cancel)
    resume = of_its_own(AsyncReleases.resume)
    publish = of_its_own(AsyncReleases.publish)
    wait = of_its_own(AsyncReleases.wait)
    events = of_its_own(AsyncReleases.events)
    download = of_its_own(AsyncReleases.download)
    to_pandas = of_its_own(AsyncReleases.to_pandas)
    to_polars = of_its_own(AsyncReleases.to_polars)
    answers = of_its_own(AsyncReleases.answers)
    samples = of_its_own(AsyncReleases.samples)


class AsyncReleaseHandle(_AsyncActions, Handle):
    """A release with asynchronous methods."""


class _Actions:
    """Methods of a release."""

    cancel = of_its_own(Releases.cancel)
    resume = of_its_own(Releases.resume)
    publish = of_its_own(Releases.publish)
    wait = of_its_own(Releases.wait)
    events = of_its_own(Releases.events)
    download = of_its_own(Releases.download)
    to_pandas = of_its_own(Releases.to_pandas)
    to_polars = of_its_own(Releases.to_polars)
    answers = of_its_own(Releases.answers)
    samples = of_its_own(Releases.samples)


class ReleaseHandle(_Actions, Handle):
    """A release with methods."""


def _file_of(release: Release, table: str | None, draw: int | None) -> str:
    """The file of a set of synthetic rows, Parquet if there is one."""
    names = {artifact.name for artifact in release.artifacts}
    stem = "_".join(str(part) for part in ("synthetic", draw, table) if part is not None)
    for name in (f"{stem}.parquet", f"{stem}.csv"):
        if name in names:
            return name
    if table is None and names & {"synthetic_groups.parquet", "synthetic_groups.csv"}:
        raise UnusableInput("this release has two tables: give table='groups' or 'individuals'")
    raise UnusableInput(f"release {release.id} has no file {stem}.parquet or {stem}.csv")


def _require_time(deadline: float | None, release_id: str) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise WaitedTooLong(f"release {release_id} is not finished yet; the job continues")
