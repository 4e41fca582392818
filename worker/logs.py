"""Logs of libraries: only the place of each record, since messages may contain anything."""

import logging

from structlog.typing import FilteringBoundLogger


class PlaceOnly(logging.Handler):
    """Logs a record's place and the type of its exception, and drops its message."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        kind = record.exc_info[0] if record.exc_info else None
        write = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        write(
            "library",
            problem=f"{record.name}:{record.funcName}:{record.lineno}",
            error_type=None if kind is None else kind.__name__,
        )


def install(log: FilteringBoundLogger) -> None:
    """Send everything that libraries log through the allow-list."""
    handler = PlaceOnly(log)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # For loggers that do not propagate and have no handler of their own, such as Celery's pool.
    logging.lastResort = handler
