"""The TCP connections of all programs in this network namespace, with their goodput and congestion window."""

import contextlib
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mpx.errors import MpxError
from mpx.net import sock_diag
from mpx.net.sock_diag import End, ListedConnection
from mpx_lab.traffic.tcp_samples import TcpSample, decode

_INFO, _VEGAS, _CONGESTION, _BBR = 2, 3, 4, 16  # attributes; the bit of Vegas also asks for those of BBR
_WANTED = 1 << (_INFO - 1) | 1 << (_VEGAS - 1) | 1 << (_CONGESTION - 1)
_NOT_LISTENING = 0xFFF & ~(1 << 10)
_GROUPS = 1 << (1 - 1) | 1 << (3 - 1)  # TCP connections destroyed, over IPv4 and over IPv6


@dataclass(frozen=True, slots=True)
class Connection:
    """One TCP connection as this host sees it."""

    cookie: int  # identifies it until the machine reboots
    inode: int  # of the socket, as in /proc/PID/fd; 0 once its program has closed it
    local: End
    peer: End
    congestion: str
    sample: TcpSample


class SocketTable:
    """Lists the connections of the namespace in which it is created."""

    def __init__(self) -> None:
        try:
            self._netlink = sock_diag.opened()
            self._ended = sock_diag.opened(_GROUPS)
        except OSError as error:
            raise MpxError(
                f"cannot ask the kernel for its connections (sock_diag): {error.strerror}; "
                "as root: modprobe tcp_diag"
            ) from None

    def open(self) -> list[Connection]:
        """Return the connections that there are, listening sockets left out."""
        try:
            return list(_decoded(sock_diag.listed(self._netlink, _NOT_LISTENING, _WANTED)))
        except OSError as error:
            raise MpxError(f"sock_diag: {error.strerror}") from None

    def ended(self) -> list[Connection]:
        """Return the connections that have ended since the last call, with their last counters."""
        found: list[Connection] = []
        with contextlib.suppress(BlockingIOError):
            while True:
                try:
                    data = self._ended.recv(sock_diag.PART_BYTES, socket.MSG_DONTWAIT)
                except OSError as error:
                    if isinstance(error, BlockingIOError):
                        raise
                    continue  # ENOBUFS: too many ended at once, and some are not reported
                found.extend(_decoded(sock_diag.parsed(data)[0]))
        return found

    def close(self) -> None:
        """Close the netlink sockets."""
        self._netlink.close()
        self._ended.close()


def _decoded(listed: Iterable[ListedConnection]) -> Iterator[Connection]:
    """Yield those with counters: a connection in TIME_WAIT has none."""
    for each in listed:
        attributes = sock_diag.attributes(each.extensions)
        sample = decode(attributes.get(_INFO, b""), attributes.get(_BBR))
        if sample is not None:
            congestion = attributes.get(_CONGESTION, b"").split(b"\0")[0].decode()
            yield Connection(each.cookie, each.inode, each.local, each.remote, congestion, sample)
