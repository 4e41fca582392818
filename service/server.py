"""Serving the application over HTTP, and stopping without breaking off answers."""

import functools
from types import FrameType
from typing import Any, cast

import uvicorn
from fastapi import FastAPI

from service.data.config import Settings
from service.protocol import Connections, LimitedProtocol

# Answers that take longer than this when the service is asked to stop are broken off.
GRACE_SECONDS = 20
# Longer than a proxy keeps a silent connection: it must be the one that closes it, or a request may
# be sent into a connection that is just being closed.
KEEP_ALIVE_SECONDS = 75


class LimitedServer(uvicorn.Server):
    """Uvicorn with limits on connections, which ends endless answers before it waits for them."""

    def __init__(
        self, app: FastAPI, settings: Settings, *, host: str = "127.0.0.1", port: int = 8000
    ) -> None:
        self._application = app
        limits = Connections(settings.header_seconds, settings.max_connections)
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                http=cast(Any, functools.partial(LimitedProtocol, limits=limits)),
                # The application writes its own log lines, without what callers wrote into paths.
                access_log=False,
                log_level="warning",
                server_header=False,
                ws="none",
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self.release_streams()
        super().handle_exit(sig, frame)

    def release_streams(self) -> None:
        """End event streams: their readers come back with Last-Event-ID."""
        context = getattr(self._application.state, "context", None)
        if context is not None:
            context.stopping.set()
