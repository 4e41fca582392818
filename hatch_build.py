"""Build hook: compute the dependencies of `scrim-server`."""

import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ServerDependencies(MetadataHookInterface):
    """Require the client of the same version, and what the service and the worker need."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dependencies."""
        project = tomllib.loads(Path(self.root, "pyproject.toml").read_text(encoding="utf-8"))
        groups = project["dependency-groups"]
        client = f"scrim=={metadata['version']}"
        metadata["dependencies"] = [client, *groups["service"], *groups["worker"]]
