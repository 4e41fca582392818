"""Serve the application over HTTP, and stop gracefully."""

import functools
from types import FrameType
from typing import Any, cast

import uvicorn
from fastapi import FastAPI

from service.data.config import Settings
from service.protocol import Connections, LimitedProtocol

# Responses that take longer than this after the service is asked to stop are aborted.
GRACE_SECONDS = 20
# Longer than a proxy keeps an idle connection: the proxy must close it first, or it may send a
# request into a connection that is being closed.
KEEP_ALIVE_SECONDS = 75


class LimitedServer(uvicorn.Server):
    """Uvicorn with limits on connections; at shutdown it ends endless responses before it waits."""

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
                # The application writes its own log lines, without the paths that callers sent.
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
        """End event streams: their readers reconnect with Last-Event-ID."""
        context = getattr(self._application.state, "context", None)
        if context is not None:
            context.stopping.set()
