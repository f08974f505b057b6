"""A log file of bounded size."""

import logging
import logging.handlers
from pathlib import Path

from mpx.errors import UsageError

MOST_BYTES = 8 << 20  # of the file, and of the older part beside it


def bounded_log(file: Path, most_bytes: int = MOST_BYTES) -> logging.Handler:
    """Return a log handler for a file; when that is full it becomes FILE.1 and a new one begins.

    Raises UsageError where it cannot be written.
    """
    try:
        return logging.handlers.RotatingFileHandler(file, maxBytes=most_bytes, backupCount=1)
    except OSError as error:
        raise UsageError(f"cannot log to {file}: {error.strerror or error}") from None
