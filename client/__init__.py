"""Scrim from Python: a typed client of the HTTP service.

`client.verify` checks certificates offline; `client.cli` is the `scrim` command.
"""

from client.client import Client
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
