"""Errors of the service, each with its HTTP status and a stable problem type (RFC 9457).

    ServiceError
    ├── Unauthorized          401  no key, or one that is unknown, expired or revoked
    ├── ScopeMissing          403  the key's scopes do not cover the call
    ├── NotFound              404
    ├── Conflict              409  the resource's state does not allow the call
    │   ├── IdempotencyKeyReused   the same key with another body
    │   ├── DatasetNotReady
    │   ├── QueueFull              the key's limit of queued releases is reached
    │   ├── ReleaseNotFinished
    │   └── LastAdminKey
    ├── ContentTooLarge       413
    ├── UnsupportedMediaType  415
    ├── RangeNotSatisfiable   416
    ├── Invalid               422
    ├── TooManyRequests       429  the key's rate limit is exceeded
    │   └── TooManyStreams         the limit of event streams is reached
    ├── ArtifactDamaged       500  its stored bytes are missing or do not match its hash
    └── NotReady              503

Messages name fields, limits and remedies; they never repeat what was sent.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from service.data.views import View


class FieldProblem(View):
    """One error in a request."""

    loc: list[str | int]
    """Where: `body`, `query`, `path` or `header`, then the path to the field."""
    message: str
    """What is wrong, as a sentence that names the field: `Age: "upper" is required`."""


class ProblemDocument(View):
    """An error response (RFC 9457)."""

    type: Annotated[str, Field(examples=["/problems/budget-exhausted"])]
    """Stable name of this kind of problem."""
    title: Annotated[str, Field(examples=["Budget exhausted"])]
    """The same for every problem of this type."""
    status: Annotated[int, Field(examples=[409])]
    """The HTTP status."""
    detail: Annotated[str, Field(examples=["the population's budget does not cover this amount"])]
    """What went wrong, and how to fix it."""
    errors: list[FieldProblem] = []
    """For invalid requests: every error that was found."""
    request_id: str
    """Quote it when you ask for help; it is in the service's log as well."""


class ServiceError(Exception):
    """The request cannot be carried out."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"
    is_alarm: ClassVar[bool] = False
    """Whether an operator must act on it: metrics count such problems by type."""

    def __init__(
        self,
        detail: str,
        *,
        errors: list[FieldProblem] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors or []
        self.headers = dict(headers or {})


class Unauthorized(ServiceError):
    """No key, or one that is unknown, expired or revoked."""

    status, type, title = 401, "unauthorized", "No valid API key"

    def __init__(self) -> None:
        super().__init__(
            "send a valid key as `Authorization: Bearer <api key>`",
            headers={"WWW-Authenticate": "Bearer"},
        )


class ScopeMissing(ServiceError):
    """The key's scopes do not cover the call."""

    status, type, title = 403, "scope-missing", "Scope missing"


class NotFound(ServiceError):
    """It does not exist, or the caller may not see it."""

    status, type, title = 404, "not-found", "Not found"


class Conflict(ServiceError):
    """The resource's state does not allow the call."""

    status, type, title = 409, "conflict", "Conflict"


class IdempotencyKeyReused(Conflict):
    """The same idempotency key with another body."""

    type, title = "idempotency-key-reused", "Idempotency key reused"


class DatasetNotReady(Conflict):
    """The dataset's rows are not available yet, or were deleted."""

    type, title = "dataset-not-ready", "Dataset not ready"


class QueueFull(Conflict):
    """The key has reached its limit of queued releases or dry runs."""

    type, title = "queue-full", "Queue full"


class ReleaseNotFinished(Conflict):
    """The release has no results (yet)."""

    type, title = "release-not-finished", "Release not finished"


class LastAdminKey(Conflict):
    """The last admin key cannot be revoked: the service would have no administrator."""

    type, title = "last-admin-key", "Last admin key"


class ContentTooLarge(ServiceError):
    """The body exceeds the limit."""

    status, type, title = 413, "too-large", "Body too large"


class UnsupportedMediaType(ServiceError):
    """The body's format is not supported."""

    status, type, title = 415, "unsupported-media-type", "Unsupported media type"


class RangeNotSatisfiable(ServiceError):
    """The range lies outside the artifact."""

    status, type, title = 416, "range-not-satisfiable", "Range not satisfiable"


class Invalid(ServiceError):
    """The request is well-formed, but its content is invalid."""

    status, type, title = 422, "invalid", "Invalid request"


class TooManyRequests(ServiceError):
    """The key's rate limit is exceeded."""

    status, type, title = 429, "rate-limited", "Too many requests"


class TooManyStreams(TooManyRequests):
    """The key, or the service, has reached its limit of open event streams."""

    type, title = "too-many-streams", "Too many event streams"


class ArtifactDamaged(ServiceError):
    """The stored bytes of an artifact are missing or do not match its hash."""

    status, type, title = 500, "artifact-damaged", "Artifact damaged"
    is_alarm = True

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the stored bytes of {name} are missing or do not match the recorded hash, so they are "
            "not used; ask the operator to restore the object from a backup"
        )


class NotReady(ServiceError):
    """A dependency of the service does not respond."""

    status, type, title = 503, "not-ready", "Not ready"
