"""The TCP connections of a network namespace as the kernel lists them (netlink, sock_diag), of all programs.

The tables below /proc/net say the same, at ten times the cost. All raise OSError where the kernel cannot, as
without its module tcp_diag.
"""

import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

_SOCK_DIAG = 4  # of netlink; the socket module has no name for it
_BY_FAMILY, _DUMP = 20, 0x301
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
_MESSAGE = struct.Struct("=BBBB2s2s16s16sIQIIIII")
_ATTRIBUTE = struct.Struct("=HH")
_BUFFER_BYTES = 4 << 20  # what the kernel may keep for us
PART_BYTES = 1 << 20  # no part of an answer has more

End = tuple[str, int]


class ListedConnection(NamedTuple):
    """A TCP connection in the kernel's list; IPv4 mapped into IPv6 is IPv4."""

    local: End
    remote: End
    cookie: int  # identifies it until the machine reboots
    inode: int  # of the socket, as in /proc/PID/fd; 0 once its program has closed it
    extensions: bytes  # see `attributes`


def opened(groups: int = 0) -> socket.socket:
    """Return a socket for `listed` in the present namespace; `groups`: bits of the events it receives."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        made.bind((0, groups))
    except OSError:
        made.close()
        raise
    return made


def listed(asking: socket.socket, states: int, extensions: int = 0) -> list[ListedConnection]:
    """Return the connections in these states; both are bits, and `extensions` those of further attributes."""
    found: list[ListedConnection] = []
    for family in (socket.AF_INET, socket.AF_INET6):
        request = _REQUEST.pack(family, socket.IPPROTO_TCP, extensions, states)
        asking.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _DUMP, 0, 0) + request)
        whole = False
        while not whole:
            some, whole = parsed(asking.recv(PART_BYTES))
            found += some
    return found


def parsed(data: bytes) -> tuple[list[ListedConnection], bool]:
    """Return the connections in a part of an answer, and whether it is the last; raises the OSError in it."""
    found, last = [], False
    for kind, body in _messages(data):
        if kind == _ERROR:
            number = -int.from_bytes(body[:4], sys.byteorder, signed=True)
            raise OSError(number, f"the kernel does not list its connections: {os.strerror(number)}")
        last = last or kind == _DONE
        if kind == _BY_FAMILY and len(body) >= _MESSAGE.size:
            family, _, _, _, sport, dport, here, there, _, cookie, *_, inode = _MESSAGE.unpack_from(body)
            local, remote = _end(family, here, sport), _end(family, there, dport)
            found.append(ListedConnection(local, remote, cookie, inode, body[_MESSAGE.size :]))
    return found, last


def attributes(extensions: bytes) -> dict[int, bytes]:
    """Return the further attributes of a connection by their kind (INET_DIAG_*)."""
    found: dict[int, bytes] = {}
    while len(extensions) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(extensions)
        found[kind] = extensions[_ATTRIBUTE.size : size]
        extensions = extensions[max(_ATTRIBUTE.size, (size + 3) & ~3) :]
    return found


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
