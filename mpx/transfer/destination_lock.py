"""One copy to a destination at a time: a lock on a file that is there only while the lock is held.

A process that is killed leaves the file without a lock; the next copy to that destination takes it over.
"""

import contextlib
import fcntl
import os

from mpx.errors import DestinationError
from mpx.files.state_folder import StateFolder
from mpx.location import shown_place


class DestinationLock:
    """The lock of one destination, held until `close`."""

    def __init__(self, folder: StateFolder, name: str, destination: str) -> None:
        """Take the lock `name` in the folder; raises DestinationError if another copy holds it, OSError."""
        self._folder = folder
        self._name = name
        self._fd = _locked(folder, name, destination)
        with contextlib.suppress(OSError):  # who holds it is good to know, and no more
            os.ftruncate(self._fd, 0)
            os.write(self._fd, f"{os.getpid()}\n".encode())

    def __enter__(self) -> "DestinationLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the file while it is still ours, and let go."""
        with contextlib.suppress(OSError):
            if _is_there(self._fd, self._folder, self._name):
                self._folder.unlink(self._name)
        os.close(self._fd)


def _locked(folder: StateFolder, name: str, destination: str) -> int:
    while True:
        fd = folder.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 100, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise DestinationError(
                f"another copy to {shown_place(destination)} is running (process {holder or 'unknown'}); "
                "wait for it or stop it"
            ) from None
        except OSError:
            os.close(fd)
            raise
        if _is_there(fd, folder, name):
            return fd
        os.close(fd)  # its last holder removed it after we opened it: another may hold a new one


def _is_there(fd: int, folder: StateFolder, name: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), folder.stat(name))
    except FileNotFoundError:
        return False
