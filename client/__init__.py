"""Scrim from Python: a typed client of the HTTP service, blocking or asynchronous.

`client.verify` checks certificates offline; `client.cli` is the `scrim` command.
"""

from client.client import AsyncClient, Client
from client.errors import (
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
