"""One copy to a destination at a time: a lock on a file that is there only while the lock is held.

A process that is killed leaves the file without a lock; the next copy to that destination takes it over.
"""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import IO

from mpx.errors import DestinationError


class DestinationLock:
    """The lock of one destination, held until `close`."""

    def __init__(self, path: Path, destination: str) -> None:
        """Take the lock; raises DestinationError if another copy holds it, OSError."""
        self._path = path
        self._file = _locked(path, destination)
        with contextlib.suppress(OSError):  # who holds it is good to know, and no more
            self._file.truncate(0)
            os.write(self._file.fileno(), f"{os.getpid()}\n".encode())

    def __enter__(self) -> "DestinationLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the file while it is still ours, and let go."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        self._file.close()


def _locked(path: Path, destination: str) -> IO[str]:
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            file.close()
            raise DestinationError(
                f"another copy to {destination} is running (process {holder or 'unknown'}); "
                "wait for it or stop it"
            ) from None
        except OSError:
            file.close()
            raise
        if _is_there(file, path):
            return file
        file.close()  # its last holder removed it after we opened it: another may hold a new one


def _is_there(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
