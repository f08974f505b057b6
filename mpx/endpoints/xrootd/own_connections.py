"""The connections that a library has opened in this process: how they send, and what their kernel knows."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from mpx.net.congestion_control import set_congestion
from mpx.net.tcp_info import parse_tcp_info, raw_tcp_info, tcp_info

_UNKNOWN_S = 4000.0  # the kernel has all bits set where it has measured nothing
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class OwnConnections:
    """`congestion`: what they are to have; empty: as their kernel chooses."""

    def __init__(self, congestion: str) -> None:
        self._congestion = congestion
        self._set: set[str] = set()  # those that have it, as /proc names them

    def set_congestion(self) -> None:
        """Have all that are there send with it; raises UsageError where that is not permitted."""
        if not self._congestion:
            return
        for name, connection in _connected():
            with connection:
                if name not in self._set:
                    set_congestion(connection, self._congestion)
                    self._set.add(name)

    @staticmethod
    def rtt_us() -> int:
        """Return the least round-trip time of them, in microseconds; 0 where it is not known."""
        found = []
        for _, connection in _connected():
            with connection:
                info = tcp_info(connection)
                found += [round(info.least_rtt_s * 1e6)] if info and info.least_rtt_s < _UNKNOWN_S else []
        return min(found, default=0)

    @staticmethod
    def sending() -> bytes:
        """Return which of them has sent most, as 8 bytes, and its kernel's record; empty where none is."""
        most_bytes, found = -1, b""
        for name, connection in _connected():
            with connection:
                raw = raw_tcp_info(connection)
            info = parse_tcp_info(raw)
            if info and info.bytes_acked > most_bytes:
                most_bytes, found = info.bytes_acked, int(name.strip("socket:[]")).to_bytes(8, "big") + raw
        return found


def _connected() -> Iterator[tuple[str, socket.socket]]:
    """Find those that are connected, each with a descriptor of its own, which the caller closes."""
    for entry in os.scandir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # it is closed meanwhile, or no socket
            name = str(Path(entry.path).readlink())
            if not name.startswith("socket:"):
                continue
            found = socket.socket(fileno=os.dup(int(entry.name)))
            try:
                if found.family not in _FAMILIES or found.type != socket.SOCK_STREAM:
                    raise OSError
                found.getpeername()
            except OSError:
                found.close()
                raise
            yield name, found
