"""The kernel's table of TCP connections in this network namespace (netlink, sock_diag), of all programs.

It shows the goodput and the congestion window of any program.
"""

import contextlib
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from mpx.errors import MpxError
from mpx_lab.traffic.tcp_samples import TcpSample, decode

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_INFO, _VEGAS, _CONGESTION, _BBR = 2, 3, 4, 16  # attributes; the bit of Vegas also asks for those of BBR
_WANTED = 1 << (_INFO - 1) | 1 << (_VEGAS - 1) | 1 << (_CONGESTION - 1)
_NOT_LISTENING = 0xFFF & ~(1 << 10)
_GROUPS = 1 << (1 - 1) | 1 << (3 - 1)  # TCP connections destroyed, over IPv4 and over IPv6
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
_MESSAGE = struct.Struct("=BBBB2s2s16s16sIQIIIII")
_ATTRIBUTE = struct.Struct("=HH")
_BUFFER_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Connection:
    """One TCP connection as this host sees it."""

    cookie: int  # identifies it until the machine reboots
    inode: int  # of the socket, as in /proc/PID/fd; 0 once its program has closed it
    local: tuple[str, int]
    peer: tuple[str, int]
    congestion: str
    sample: TcpSample


class SocketTable:
    """Lists the connections of the namespace in which it is created."""

    def __init__(self) -> None:
        try:
            self._asking = self._socket(0)
            self._ended = self._socket(_GROUPS)
        except OSError as error:
            raise MpxError(
                f"cannot ask the kernel for its connections (sock_diag): {error.strerror}; "
                "as root: modprobe tcp_diag"
            ) from None

    def open(self) -> list[Connection]:
        """Return the connections that there are, listening sockets left out."""
        found: list[Connection] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            request = _REQUEST.pack(family, socket.IPPROTO_TCP, _WANTED, _NOT_LISTENING)
            size = _HEADER.size + len(request)
            self._asking.send(_HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 0, 0) + request)
            done = False
            while not done:
                for kind, body in _messages(self._asking.recv(_BUFFER_BYTES)):
                    done = done or kind == _NLMSG_DONE
                    if kind == _NLMSG_ERROR:
                        number = -int(struct.unpack_from("=i", body)[0])
                        raise MpxError(f"the kernel cannot list its connections: {os.strerror(number)}")
                    if kind == _SOCK_DIAG_BY_FAMILY:
                        found.extend(_decoded(body))
        return found

    def ended(self) -> list[Connection]:
        """Return the connections that have ended since the last call, with their last counters."""
        found: list[Connection] = []
        with contextlib.suppress(BlockingIOError):
            while True:
                try:
                    data = self._ended.recv(_BUFFER_BYTES, socket.MSG_DONTWAIT)
                except OSError as error:
                    if isinstance(error, BlockingIOError):
                        raise
                    continue  # ENOBUFS: too many ended at once, and some are not reported
                for kind, body in _messages(data):
                    if kind == _SOCK_DIAG_BY_FAMILY:
                        found.extend(_decoded(body))
        return found

    def close(self) -> None:
        """Close the netlink sockets."""
        self._asking.close()
        self._ended.close()

    @staticmethod
    def _socket(groups: int) -> socket.socket:
        made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        made.bind((0, groups))
        return made


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (type, body) of each netlink message."""
    while len(data) >= _HEADER.size:
        size, kind, *_ = _HEADER.unpack_from(data)
        yield kind, data[_HEADER.size : size]
        data = data[(size + 3) & ~3 :]


def _decoded(body: bytes) -> Iterator[Connection]:
    family, _, _, _, sport, dport, source, target, _, cookie, *_, inode = _MESSAGE.unpack_from(body)
    attributes: dict[int, bytes] = {}
    rest = body[_MESSAGE.size :]
    while len(rest) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(rest)
        attributes[kind] = rest[_ATTRIBUTE.size : size]
        rest = rest[max(4, (size + 3) & ~3) :]
    sample = decode(attributes.get(_INFO, b""), attributes.get(_BBR))
    if sample is None:  # in TIME_WAIT
        return
    yield Connection(
        cookie=cookie,
        inode=inode,
        local=(_address(family, source), int.from_bytes(sport, "big")),
        peer=(_address(family, target), int.from_bytes(dport, "big")),
        congestion=attributes.get(_CONGESTION, b"").split(b"\0")[0].decode(),
        sample=sample,
    )


def _address(family: int, raw: bytes) -> str:
    """Return an address as text; IPv4 mapped into IPv6 as IPv4."""
    if family == socket.AF_INET:
        return str(ipaddress.IPv4Address(raw[:4]))
    address = ipaddress.IPv6Address(raw)
    return str(address.ipv4_mapped or address)
