"""Scrim from Python: a typed client of the HTTP service, blocking or asynchronous.

`scrim.verify` checks certificates offline; `scrim.cli` is the `scrim` command. The public names load
on first use: the service and its workers import `scrim.spec` alone, without an HTTP client.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"
"""The version of both packages, `scrim` and `scrim-server`."""

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

if TYPE_CHECKING:
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
else:

    def __getattr__(name: str) -> type:
        """Load a public name from the module that defines it."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from scrim import client, errors

        return vars(client if name in ("AsyncClient", "Client") else errors)[name]


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
