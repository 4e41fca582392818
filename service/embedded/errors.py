"""Errors of the embedded servers.

EmbeddedError
├── BinaryNotFoundError   no server program on this machine
├── FolderInUseError      another process uses this data folder
├── StartFailedError      a program ended, or was not ready in time
└── StopRequestedError    a signal asked to stop before everything was started
"""


class EmbeddedError(RuntimeError):
    """Any failure to find, start or stop an embedded server."""


class BinaryNotFoundError(EmbeddedError):
    """No server program was found in any of the places we look."""


class FolderInUseError(EmbeddedError):
    """Another process holds the lock of this folder."""


class StartFailedError(EmbeddedError):
    """A program ended, or was not ready in time."""


class StopRequestedError(EmbeddedError):
    """A signal asked to stop before everything was started."""
