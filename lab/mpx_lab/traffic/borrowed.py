"""Duplicates of the sockets of another process (pidfd_getfd), for which root has the permission."""

import contextlib
import ctypes
import os
import socket
from pathlib import Path
from typing import Self

_PIDFD_GETFD = 438  # on all architectures; the os module has no name for it


class Borrowed:
    """The TCP connections that a process has open to any port but one."""

    def __init__(self, pid: int, but_port: int) -> None:
        self._pid, self._but_port = pid, but_port
        self._pidfd = os.pidfd_open(pid)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._held: dict[int, socket.socket] = {}  # by inode

    def connections(self) -> list[socket.socket]:
        """Return those that are open there now; duplicates of closed ones are closed."""
        open_there = sockets_of(self._pid)
        for inode in [inode for inode in self._held if inode not in open_there]:
            self._held.pop(inode).close()
        for inode, fd in open_there.items():
            if inode not in self._held and (taken := self._take(fd)) is not None:
                self._held[inode] = taken
        return [each for each in self._held.values() if self._is_wanted(each)]

    def _take(self, fd: int) -> socket.socket | None:
        """Return a socket of that process; None where it has just been closed."""
        mine = self._libc.syscall(_PIDFD_GETFD, self._pidfd, fd, 0)
        return socket.socket(fileno=mine) if mine >= 0 else None

    def _is_wanted(self, connection: socket.socket) -> bool:
        if connection.type != socket.SOCK_STREAM or connection.family == socket.AF_UNIX:
            return False
        with contextlib.suppress(OSError):  # not connected, or no longer
            return bool(connection.getpeername()[1] != self._but_port)
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._held.values():
            each.close()
        os.close(self._pidfd)


def sockets_of(pid: int) -> dict[int, int]:
    """Return the sockets that a process has open: its descriptor of each by inode."""
    found = {}
    with contextlib.suppress(OSError):  # it has ended
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                kind, _, number = str(file.readlink()).partition(":[")
                if kind == "socket":
                    found[int(number.rstrip("]"))] = int(file.name)
    return found
