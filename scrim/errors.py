"""Errors of the client.

ScrimError
├── Problem            the service refused: status, type, detail and field errors (RFC 9457)
├── Unreachable        the service does not answer
├── DatasetRejected    an uploaded table does not have the declared structure
├── ReleaseFailed      a release ended without results
├── WaitedTooLong      a wait timed out; the job continues
├── DamagedDownload    a file is not what the service announced
├── UnusableInput      a file or setting of the caller cannot be used
└── StackFailed        the embedded stack did not start
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import httpx
from pydantic import ValidationError

from scrim.records import Dataset, Release
from scrim.spec.messages import describe

SHOWN_INPUT_CHARACTERS = 300
"""Largest part of a response without a problem document that an error shows."""


@dataclass(frozen=True)
class FieldError:
    """One error in a request or a file."""

    loc: tuple[str | int, ...]
    """The path of the field, for programs."""
    message: str
    """What is wrong, as a sentence that names the field."""

    def __str__(self) -> str:
        """Such as `"budget.epsilon" must be greater than 0`."""
        return self.message


class ScrimError(Exception):
    """Base class of the client's errors."""

    exit_code: ClassVar[int] = 1
    """Exit code of the command line."""
    errors: tuple[FieldError, ...] = ()
    """Details, if any."""

    def __str__(self) -> str:
        """The message, then a line for each detail that is not in it."""
        message = super().__str__()
        details = [str(each) for each in self.errors if str(each) not in message]
        return "\n  - ".join([message, *details])


class Problem(ScrimError):
    """The service refused the request; the fields are those of its problem document."""

    def __init__(
        self,
        *,
        type: str,
        title: str,
        status: int,
        detail: str,
        errors: tuple[FieldError, ...] = (),
        request_id: str = "",
    ) -> None:
        super().__init__(detail or title)
        self.type = type
        self.title = title
        self.status = status
        self.detail = detail
        self.errors = errors
        self.request_id = request_id

    @property
    def kind(self) -> str:
        """The last part of the type, such as `budget-exhausted`."""
        return self.type.rpartition("/")[2]

    @classmethod
    def of(cls, response: httpx.Response) -> "Problem":
        """Read the problem from a response, which may come from a proxy in another format."""
        try:
            content: Any = response.json()
        except ValueError:
            content = None
        if not isinstance(content, dict):
            content = {"detail": response.text.strip()[:SHOWN_INPUT_CHARACTERS]}
        found = content.get("errors")
        return cls(
            type=str(content.get("type", "about:blank")),
            title=str(content.get("title", response.reason_phrase)),
            status=response.status_code,
            detail=str(content.get("detail", "")),
            errors=tuple(map(_field_error, found)) if isinstance(found, list) else (),
            request_id=str(content.get("request_id", "")),
        )


class UnusableInput(ScrimError):
    """A file or setting of the caller cannot be used."""

    exit_code = 2

    def __init__(self, message: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(message)
        self.errors = errors

    @classmethod
    def of(cls, what: str, error: ValidationError, content: Any) -> "UnusableInput":
        """Turn the validation errors of `content` into field errors; `what` names it."""
        found = error.errors(include_input=False, include_url=False)
        errors = tuple(FieldError(each["loc"], describe(each, content)) for each in found)
        return cls(f"{what} is not valid", errors)


class Unreachable(ScrimError):
    """The service does not answer."""

    exit_code = 3


class DatasetRejected(ScrimError):
    """An uploaded table does not have the declared structure."""

    exit_code = 4

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(f"dataset {dataset.id} is {dataset.state}: {dataset.reason or 'no rows'}")
        self.dataset = dataset


class ReleaseFailed(ScrimError):
    """A release ended without results."""

    exit_code = 4

    def __init__(self, release: Release) -> None:
        reason = (release.error or {}).get("detail", "")
        super().__init__(f"release {release.id} {release.state}{reason and f': {reason}'}")
        self.release = release


class WaitedTooLong(ScrimError):
    """The wait timed out; the job itself continues."""

    exit_code = 4


class DamagedDownload(ScrimError):
    """A file is not what the service announced."""

    exit_code = 5


class StackFailed(ScrimError):
    """The embedded stack did not start."""


def _field_error(found: Any) -> FieldError:
    if not isinstance(found, dict):
        return FieldError((), str(found))
    return FieldError(tuple(found.get("loc", ())), str(found.get("message", "")))
