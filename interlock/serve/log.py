"""The service's own log lines: over the standard library's logging, whatever the application configured, since
structlog's default prints to standard output."""

from __future__ import annotations

import logging
from functools import cache

import structlog


@cache
def log() -> structlog.stdlib.BoundLogger:
    """Bound to ``interlock.serve``. No line holds a value of a request."""
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger("interlock.serve"),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.processors.add_log_level, structlog.processors.KeyValueRenderer(key_order=["event"])],
    )
    return logger
