"""The bytes of artifacts; an artifact is used only if it matches the recorded hash."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from service.data.content import DamagedContent
from service.data.context import Context
from service.data.errors import ArtifactDamaged
from service.data.models import ArtifactRow
from service.data.storage import StoredContent


def read_artifact(
    context: Context, artifact: ArtifactRow, *, start: int = 0, end: int | None = None
) -> Iterator[bytes]:
    """The bytes from `start` up to, not including, `end`; ArtifactDamaged at once if damaged."""
    with _alarmed(context, artifact):
        return context.content.read(_content(artifact), start=start, end=end)


def send_artifact(
    context: Context, artifact: ArtifactRow, *, start: int = 0, end: int | None = None
) -> AsyncIterator[bytes]:
    """As `read_artifact`, for an HTTP answer."""
    with _alarmed(context, artifact):
        return context.content.get(_content(artifact), start=start, end=end)


@contextmanager
def _alarmed(context: Context, artifact: ArtifactRow) -> Iterator[None]:
    try:
        yield
    except DamagedContent:
        context.log.error(
            "artifact_damaged", release_id=artifact.release_id, artifact=artifact.name
        )
        raise ArtifactDamaged(artifact.name) from None


def _content(artifact: ArtifactRow) -> StoredContent:
    return StoredContent(artifact.object_key, artifact.size, artifact.sha256.hex())
