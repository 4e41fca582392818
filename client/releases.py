"""Releases: previewing, submitting, following, downloading, and asking the released model."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from client.errors import DamagedDownload, Problem, ReleaseFailed, Unreachable, WaitedTooLong
from client.records import Answer, Artifact, Event, Preview, Progress, Release
from client.transport import Transport, idempotent

POLL_SECONDS = 0.5
# The service sends something every 15 seconds, if only to say that it is still there.
SILENCE_SECONDS = 45.0

PLAIN_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")


class Releases:
    """Releases; curators make them, analysts see published ones."""

    def __init__(self, transport: Transport, sleep: Callable[[float], None]) -> None:
        self._transport = transport
        self._sleep = sleep

    def preview(self, body: Mapping[str, Any]) -> Preview:
        """What a release would cost; touches neither data nor budget."""
        answer = self._transport.send("POST", "/v1/releases/preview", json=dict(body))
        return Preview.model_validate(answer.json())

    def submit(self, body: Mapping[str, Any], *, idempotency_key: str | None = None) -> Release:
        """Queue a release. A repetition with the same key finds the same release."""
        headers = idempotent(idempotency_key)
        return self._post("/v1/releases", json=dict(body), headers=headers)

    def list(self) -> Iterator[Release]:
        """The releases that this key may see, the newest first."""
        return self._transport.pages("/v1/releases", Release)

    def get(self, release_id: str) -> Release:
        """One release."""
        return self._transport.get(f"/v1/releases/{release_id}", Release)

    def cancel(self, release_id: str) -> Release:
        """Give a release up; what it has not spent returns."""
        return self._post(f"/v1/releases/{release_id}/cancel")

    def publish(self, release_id: str) -> Release:
        """Make a release visible to analysts."""
        return self._post(f"/v1/releases/{release_id}/publish")

    def wait(
        self,
        release_id: str,
        *,
        progress: Callable[[Progress], None] = lambda progress: None,
        timeout: float | None = None,
    ) -> Release:
        """Wait until a release has succeeded; ReleaseFailed if it ends otherwise."""
        deadline = None if timeout is None else time.monotonic() + timeout
        last_event = 0
        while True:
            # Where events do not come through, this loop looks after the release by itself.
            with suppress(httpx.TransportError, Problem, Unreachable):
                for event in self.events(release_id, after=last_event):
                    last_event = event.id
                    if event.kind == "progress":
                        progress(Progress.model_validate(event.data))
                    _require_time(deadline, release_id)
            release = self.get(release_id)
            progress(release.progress)
            if release.is_over:
                break
            _require_time(deadline, release_id)
            self._sleep(POLL_SECONDS)
        if release.state != "succeeded":
            raise ReleaseFailed(release)
        return release

    def events(self, release_id: str, *, after: int = 0) -> Iterator[Event]:
        """What happens to a release, as it happens, until it has ended or the stream breaks off."""
        with self._transport.open(
            "GET",
            f"/v1/releases/{release_id}/events",
            headers={"Last-Event-ID": str(after), "Accept": "text/event-stream"},
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=5.0),
        ) as response:
            yield from read_events(response.iter_lines())

    def download(
        self, release_id: str, folder: Path, *, names: Sequence[str] | None = None
    ) -> dict[str, Path]:
        """Download artifacts, all of them where no names are given, and check their digests."""
        available = {artifact.name: artifact for artifact in self.get(release_id).artifacts}
        wanted = list(available) if names is None else names
        for name in wanted:
            if name not in available:
                raise DamagedDownload(
                    f"release {release_id} has no artifact {name!r}; it has "
                    f"{', '.join(available) or 'none'}"
                )
        folder.mkdir(parents=True, exist_ok=True)
        return {name: self._fetch(release_id, available[name], folder) for name in wanted}

    def answers(self, release_id: str, workload: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Ask the released model; for analysts, and free."""
        body = {"workload": [dict(item) for item in workload]}
        answer = self._transport.send("POST", f"/v1/releases/{release_id}/answers", json=body)
        return [Answer.model_validate(item) for item in answer.json()["items"]]

    def samples(self, release_id: str, rows: int) -> str:
        """Draw rows (groups, for two-level data) from the released model, as CSV; free, for analysts."""
        path = f"/v1/releases/{release_id}/samples"
        return self._transport.send("POST", path, json={"rows": rows}).text

    def _post(self, path: str, **options: Any) -> Release:
        return Release.model_validate(self._transport.send("POST", path, **options).json())

    def _fetch(self, release_id: str, artifact: Artifact, folder: Path) -> Path:
        """Write beside the final name, then rename: a file that is there is whole."""
        if not PLAIN_NAME.fullmatch(artifact.name):
            raise DamagedDownload(f"{artifact.name!r} is not the name of an artifact")
        path = folder / artifact.name
        draft = folder / f".{artifact.name}.part"
        digest = hashlib.sha256()
        try:
            with draft.open("wb") as file:
                for piece in self._content(release_id, artifact):
                    digest.update(piece)
                    file.write(piece)
            if digest.hexdigest() != artifact.sha256:
                raise DamagedDownload(f"{artifact.name} is not what the service announced")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        return path

    def _content(self, release_id: str, artifact: Artifact) -> Iterator[bytes]:
        path = f"/v1/releases/{release_id}/artifacts/{artifact.name}"
        with self._transport.open("GET", path) as response:
            try:
                yield from response.iter_bytes()
            except httpx.TransportError as error:
                raise DamagedDownload(f"{artifact.name} broke off; try again") from error


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Server-sent events; comments and events without a number are passed over."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if fields.get("id", "").isdigit() and "data" in fields:
            yield Event(
                id=int(fields["id"]),
                kind=fields.get("event", "message"),
                data=json.loads(fields["data"]),
            )
        fields = {}


def _require_time(deadline: float | None, release_id: str) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise WaitedTooLong(f"release {release_id} is not finished yet; it goes on")
