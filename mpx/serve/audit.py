"""The audit log: one JSON object on a line for each login and each change or transfer of a file."""

import json
import os
import threading
import time
from pathlib import Path

from mpx.errors import UsageError

_TRANSFERS = ("RETR", "ERET", "STOR", "ESTO", "APPE")
SENDING = frozenset(("RETR", "ERET"))  # perhaps to another server than the client, which is told then
WORTH = frozenset((*_TRANSFERS, "TARGET", "DELE", "RMD", "MKD", "RNFR", "RNTO", "MFMT", "SITE"))  # of a line


class Audit:
    """An open log; lines of several threads do not mix."""

    def __init__(self, path: Path | None) -> None:
        """`path`: None writes nothing. Raises UsageError if the file cannot be opened."""
        self._path = path
        self._lock = threading.Lock()
        self._fd = -1
        self.reopen()

    def reopen(self) -> None:
        """Open the file anew, after somebody has given it another name. Raises UsageError."""
        if self._path is None:
            return
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(f"cannot write the audit log {self._path}: {error.strerror}") from None
        with self._lock:
            old, self._fd = self._fd, fd
            if old >= 0:
                os.close(old)

    def log(self, event: str, peer: str, token: str, **more: str | int) -> None:
        """Write a line. A log that cannot be written does not end transfers."""
        if self._fd < 0:
            return
        now_s = time.time()
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_s)) + f".{int(now_s * 1000) % 1000:03}Z"
        line = json.dumps({"time": when, "event": event, "peer": peer, "token": token, **more}) + "\n"
        with self._lock:
            try:
                os.write(self._fd, line.encode("utf-8", "backslashreplace"))
            except OSError:
                return
