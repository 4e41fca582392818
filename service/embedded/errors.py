"""What can go wrong with the embedded servers.

EmbeddedError
├── BinaryNotFoundError   no server program on this machine
├── FolderInUseError      another process works in this data folder
├── StartFailedError      a program ended, or stayed silent, before it was ready
└── StopRequestedError    a signal asked us to stop while something was still to be started
"""


class EmbeddedError(RuntimeError):
    """Any failure to find, start or stop an embedded server."""


class BinaryNotFoundError(EmbeddedError):
    """No server program was found in any of the places we look."""


class FolderInUseError(EmbeddedError):
    """Another process holds the lock of this folder."""


class StartFailedError(EmbeddedError):
    """A program ended, or stayed silent, before it was ready."""


class StopRequestedError(EmbeddedError):
    """A signal asked us to stop while something was still to be started."""
