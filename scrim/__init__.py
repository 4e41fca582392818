"""Scrim from Python: a typed client of the HTTP service, blocking or asynchronous.

`scrim.verify` checks certificates offline; `scrim.cli` is the `scrim` command.
"""

from scrim.client import AsyncClient, Client
from scrim.errors import (
    DamagedDownload,
    DatasetRejected,
    FieldError,
    Problem,
    ReleaseFailed,
    ScrimError,
    StackFailed,
    Unreachable,
    UnusableInput,
    WaitedTooLong,
)

__all__ = [
    "AsyncClient",
    "Client",
    "DamagedDownload",
    "DatasetRejected",
    "FieldError",
    "Problem",
    "ReleaseFailed",
    "ScrimError",
    "StackFailed",
    "Unreachable",
    "UnusableInput",
    "WaitedTooLong",
]
