"""Structured logs, one JSON object a line, with an allow-list of fields: all others are dropped.

A field that is not on the list cannot be logged by accident, so no value of a row and no message of
another library reaches a log.
"""

import re
import sys
import traceback
import uuid
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, TextIO, cast

import structlog
from structlog.typing import FilteringBoundLogger

ALLOWED_FIELDS = frozenset(
    {
        "artifact",
        "check",
        "dataset_id",
        "duration_ms",
        "error_type",
        "event",
        "key_id",
        "level",
        "method",
        "operation",
        "population_id",
        "problem",
        "queue",
        "release_id",
        "request_id",
        "route",
        "state",
        "status",
        "task",
        "timestamp",
        "trace",
    }
)
LONGEST_VALUE = 200
"""Longest value of a field."""

_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# The folder that holds our packages: a checkout, or the site-packages of an environment.
_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("migrations", "scrim", "service", "synth", "worker")


def build_logger(stream: TextIO | None = None) -> FilteringBoundLogger:
    """A logger that writes JSON lines to `stream`, by default standard error."""
    return cast(
        FilteringBoundLogger,
        structlog.wrap_logger(
            structlog.WriteLogger(stream or sys.stderr),
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                keep_allowed,
                structlog.processors.JSONRenderer(sort_keys=True),
            ],
            wrapper_class=structlog.make_filtering_bound_logger("info"),
        ),
    )


def keep_allowed(
    _logger: Any, _method: str, fields: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Drop every field that is not on the list; shorten what is too long."""
    return {name: _plain(fields[name]) for name in fields if name in ALLOWED_FIELDS}


def choose_request_id(proposed: str | None) -> str:
    """The caller's request id if it is a plain one, else a fresh one."""
    if proposed is not None and _SANE_REQUEST_ID.fullmatch(proposed):
        return proposed
    return uuid.uuid4().hex


def trace_of(error: BaseException) -> str:
    """Where an error came from, innermost first: files and lines, never its message or values."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    ours = [_ROOT / name for name in _PACKAGES]
    places = (
        f"{Path(frame.filename).relative_to(_ROOT)}:{frame.lineno}"
        for frame in frames
        if any(Path(frame.filename).is_relative_to(package) for package in ours)
    )
    return " < ".join(places)


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    return str(value)[:LONGEST_VALUE]
