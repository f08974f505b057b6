"""The connections of this process, which libraries have opened: counted, and given a congestion control."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterable

_FOLDER = "/proc/self/fd"
_OF_NETWORKS = (socket.AF_INET, socket.AF_INET6)


class ForeignConnections:
    """May be used from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()  # guards the rest
        self._congestion = ""  # of what is opened; empty: the kernel's choice
        self._set: dict[str, str] = {}  # by socket, of those that are open
        self._counted: dict[str, tuple[int, int]] = {}  # bytes acknowledged, and received, of those
        self._of_closed = self._before = (0, 0)

    def begin(self, congestion: str = "") -> None:
        """Count from now on, and have what is opened from now on use another congestion control."""
        with self._guard:
            self._look()
            self._before, self._congestion = self._all, congestion

    def look(self) -> None:
        """Look at all that there are now."""
        with self._guard:
            self._look()

    @property
    def totals(self) -> tuple[int, int]:
        """Bytes that were acknowledged, and received, as far as was looked."""
        with self._guard:
            (sent, got), (sent_before, got_before) = self._all, self._before
        return sent - sent_before, got - got_before

    @property
    def _all(self) -> tuple[int, int]:
        return _sum([self._of_closed, *self._counted.values()])

    def _look(self) -> None:
        from mpx.net.tcp_info import tcp_info

        there = _sockets()
        closed = [self._counted.pop(name) for name in self._counted.keys() - there.keys()]
        self._of_closed = _sum([self._of_closed, *closed])
        self._set = {name: congestion for name, congestion in self._set.items() if name in there}
        for name, fd in there.items():
            if (connection := _connection(name, fd)) is None:
                continue
            with contextlib.closing(connection):
                if info := tcp_info(connection):
                    self._counted[name] = info.bytes_acked, info.bytes_received
                if self._congestion and self._set.get(name) != self._congestion:
                    self._set[name] = self._congestion
                    with contextlib.suppress(OSError):  # it has been looked at whether it may
                        connection.setsockopt(
                            socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._congestion.encode()
                        )


def _sum(moved: Iterable[tuple[int, int]]) -> tuple[int, int]:
    sent, got = zip(*moved, strict=True)
    return sum(sent), sum(got)


def _sockets() -> dict[str, int]:
    """Return the sockets of this process by their names."""
    found: dict[str, int] = {}
    for fd in os.listdir(_FOLDER):
        with contextlib.suppress(OSError):  # it is closed by now
            name = os.readlink(f"{_FOLDER}/{fd}")
            if name.startswith("socket:"):
                found[name] = int(fd)
    return found


def _connection(name: str, fd: int) -> socket.socket | None:
    """Return a TCP connection, which whoever takes it closes; None where it is none, or closed by now."""
    with contextlib.suppress(OSError):
        found = socket.socket(fileno=os.dup(fd))
        try:
            is_one = found.family in _OF_NETWORKS and found.type == socket.SOCK_STREAM
            is_same = os.readlink(f"{_FOLDER}/{found.fileno()}") == name
            if is_one and is_same and found.getpeername():
                return found
        except OSError:
            pass
        found.close()
    return None
