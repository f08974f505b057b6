"""The connections of this process, which libraries have opened: counted, and given a congestion control."""

import contextlib
import os
import socket
from collections.abc import Iterator

_FOLDER = "/proc/self/fd"
_OF_NETWORKS = (socket.AF_INET, socket.AF_INET6)


class ForeignConnections:
    """Used by one thread at a time. `congestion`: of what is opened; empty: the kernel's choice."""

    def __init__(self) -> None:
        self.congestion = ""
        self._set: dict[str, str] = {}  # by socket
        self._counted: dict[str, tuple[int, int]] = {}  # bytes that were acknowledged, and received
        self._before = 0, 0

    def begin(self, congestion: str = "") -> None:
        """Count from now on, and have what is opened from now on use another congestion control."""
        self.look()
        self._before, self.congestion = self._all, congestion

    def look(self) -> None:
        """Look at all that there are now."""
        from mpx.net.tcp_info import tcp_info

        for name, connection in _connections():
            with contextlib.closing(connection):
                if info := tcp_info(connection):
                    self._counted[name] = info.bytes_acked, info.bytes_received
                if self.congestion and self._set.get(name) != self.congestion:
                    self._set[name] = self.congestion
                    with contextlib.suppress(OSError):  # it has been looked at whether it may
                        connection.setsockopt(
                            socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.congestion.encode()
                        )

    @property
    def totals(self) -> tuple[int, int]:
        """Bytes that were acknowledged, and received, as far as was looked."""
        (sent, got), (sent_before, got_before) = self._all, self._before
        return sent - sent_before, got - got_before

    @property
    def _all(self) -> tuple[int, int]:
        return sum(sent for sent, _ in self._counted.values()), sum(got for _, got in self._counted.values())


def _connections() -> Iterator[tuple[str, socket.socket]]:
    """Yield the TCP connections of this process by their names; whoever takes one closes it."""
    for fd in os.listdir(_FOLDER):
        with contextlib.suppress(OSError):  # it is closed by now, or not connected
            name = os.readlink(f"{_FOLDER}/{fd}")
            if not name.startswith("socket:"):
                continue
            found = socket.socket(fileno=os.dup(int(fd)))
            try:
                is_one = found.family in _OF_NETWORKS and found.type == socket.SOCK_STREAM
                is_one = is_one and bool(found.getpeername())
            except OSError:
                is_one = False
            if is_one:
                yield name, found
            else:
                found.close()
