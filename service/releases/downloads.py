"""Artifacts over HTTP, with ranges and conditional requests (RFC 9110)."""

import re
from dataclasses import dataclass

from fastapi import Response
from fastapi.responses import StreamingResponse

from service.data.artifacts import send_artifact
from service.data.context import Context
from service.data.errors import RangeNotSatisfiable
from service.data.models import ArtifactRow

_ONE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True)
class Conditions:
    """The headers of range and conditional requests."""

    if_none_match: str | None = None
    range: str | None = None
    if_range: str | None = None


def download(context: Context, artifact: ArtifactRow, conditions: Conditions) -> Response:
    """Send the artifact, the requested range, or 304 if the caller has it already."""
    etag = f'"{artifact.sha256.hex()}"'
    headers = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        # A released report is HTML: browsers must not run it as a page of this service.
        "Content-Disposition": f'attachment; filename="{artifact.name}"',
        "X-Content-Type-Options": "nosniff",
    }
    if _is_known(etag, conditions.if_none_match):
        return Response(status_code=304, headers=headers)
    asked = conditions.range if conditions.if_range in {None, etag} else None
    part = _part_of(asked, artifact.size)
    start, end = part or (0, artifact.size)
    headers["Content-Length"] = str(end - start)
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{artifact.size}"
    return StreamingResponse(
        send_artifact(context, artifact, start=start, end=None if part is None else end),
        status_code=200 if part is None else 206,
        headers=headers,
        media_type=artifact.media_type,
    )


def _is_known(etag: str, if_none_match: str | None) -> bool:
    """Whether the caller already has this content."""
    named = [each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")]
    return "*" in named or etag in named


def _part_of(asked: str | None, size: int) -> tuple[int, int] | None:
    """The requested range; None for the whole artifact, also if several ranges are requested."""
    match = _ONE_RANGE.fullmatch((asked or "").replace(" ", ""))
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if first == "":
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < int(first):
            return None
    if start >= end:
        raise RangeNotSatisfiable(
            f"the artifact has {size} bytes", headers={"Content-Range": f"bytes */{size}"}
        )
    return start, end
