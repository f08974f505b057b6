"""The TCP connections of this host, as the kernel lists them (netlink, sock_diag).

The tables below /proc/net say the same, at ten times the cost: where many ports are in use that is too much
for looking many times a second.
"""

import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

_SOCK_DIAG = 4  # of netlink; the socket module has no name for it
_BY_FAMILY, _DUMP = 20, 0x301
_ERROR, _DONE = 2, 3
# Those that may have data on their way: not FIN_WAIT2, TIME_WAIT, CLOSE or LISTEN.
_ALIVE = sum(1 << state for state in (1, 2, 3, 4, 8, 9, 11))
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
_MESSAGE = struct.Struct("=BBBB2s2s16s16s")
_BUFFER_BYTES = 1 << 20

End = tuple[str, int]


@dataclass(frozen=True)
class Connection:
    """Address and port of both ends of a connection; IPv4 mapped into IPv6 is IPv4."""

    local: End
    remote: End


class Connections:
    """Lists the TCP connections of the network namespace it is made in; raises OSError where it cannot."""

    def __init__(self) -> None:
        self._asking = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
        self._asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)

    def now(self) -> list[Connection]:
        """Return all that live; raises OSError."""
        found: list[Connection] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            request = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, _ALIVE)
            self._asking.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _DUMP, 0, 0) + request)
            whole = False
            while not whole:
                some, whole = parsed(self._asking.recv(_BUFFER_BYTES))
                found += some
        return found

    def close(self) -> None:
        """Ask no more."""
        self._asking.close()


def parsed(data: bytes) -> tuple[list[Connection], bool]:
    """Return the connections in a part of an answer, and whether it is the last; raises the OSError in it."""
    found, last = [], False
    for kind, body in _messages(data):
        if kind == _ERROR:
            number = -int.from_bytes(body[:4], sys.byteorder, signed=True)
            raise OSError(number, f"the kernel does not list its connections: {os.strerror(number)}")
        last = last or kind == _DONE
        if kind == _BY_FAMILY and len(body) >= _MESSAGE.size:
            family, _, _, _, sport, dport, here, there = _MESSAGE.unpack_from(body)
            found.append(Connection(_end(family, here, sport), _end(family, there, dport)))
    return found, last


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and body of each message."""
    while len(data) >= _HEADER.size:
        size, kind, *_ = _HEADER.unpack_from(data)
        yield kind, data[_HEADER.size : size]
        data = data[max(_HEADER.size, (size + 3) & ~3) :]


def _end(family: int, address: bytes, port: bytes) -> End:
    if family == socket.AF_INET:
        return socket.inet_ntop(family, address[:4]), int.from_bytes(port, "big")
    known = ipaddress.IPv6Address(address)
    return str(known.ipv4_mapped or known), int.from_bytes(port, "big")
