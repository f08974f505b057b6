"""Probes by the echo of the Internet Control Message Protocol (ICMP), which the kernel of the target answers.

Unprivileged where the system permits it (net.ipv4.ping_group_range), else over a raw socket.
"""

import secrets
import socket
import struct
from contextlib import closing

from mpx.errors import UsageError
from mpx.net import tcp
from mpx.rtt.method import LOST_AFTER_S, Answer, Kind, Noise, loopback_noise_s
from mpx.rtt.methods.datagrams import Datagrams

_HEADER = struct.Struct("!BBHHH")  # type, code, checksum, identifier, sequence number
_PAYLOAD = struct.Struct("!QQ40x")  # token, number: 64 bytes with the header
_REQUEST, _REPLY = {4: 8, 6: 128}, {4: 0, 6: 129}  # types, by version


class IcmpMethod:
    """Probes `host`, an address. Raises UsageError where this user may not, OSError without a socket."""

    kind: Kind = "icmp"
    lost_after_s = LOST_AFTER_S
    sees_loss = True
    retransmissions = None

    def __init__(self, host: str) -> None:
        family = tcp.family_of(host)
        self._version = 6 if family == socket.AF_INET6 else 4
        connection, self._is_raw = _opened(family)
        self.name = f"ICMP echo ({'raw' if self._is_raw else 'unprivileged'} socket)"
        self._token = secrets.randbits(64)
        self._identifier = secrets.randbits(16)
        self._datagrams = Datagrams(connection, host, 0)

    @property
    def trouble(self) -> str:
        """As Method."""
        return self._datagrams.trouble

    def ask(self, number: int) -> float:
        """As Method."""
        return self._datagrams.send(number, self._question(number))

    def answers(self, until_s: float) -> list[Answer]:
        """As Method."""
        found = []
        for arrival in self._datagrams.arrivals(until_s):
            number = self._number(arrival.data)
            sent_s = None if number is None else self._datagrams.take_sent(number)
            if number is not None and sent_s is not None:
                found.append(Answer(number, max(0.0, arrival.received_s - sent_s)))
        return found

    def noise(self) -> Noise:
        """As Method."""
        with closing(IcmpMethod("::1" if self._version == 6 else "127.0.0.1")) as method:
            return Noise(loopback_noise_s(method), "echoes over loopback")

    def close(self) -> None:
        """Close the socket."""
        self._datagrams.close()

    def _question(self, number: int) -> bytes:
        """Return a request; the kernel replaces fields that it has to know, as the checksum of IPv6."""
        about = self._identifier, number & 0xFFFF
        payload = _PAYLOAD.pack(self._token, number)
        unsummed = _HEADER.pack(_REQUEST[self._version], 0, 0, *about) + payload
        return _HEADER.pack(_REQUEST[self._version], 0, checksum(unsummed), *about) + payload

    def _number(self, data: bytes) -> int | None:
        """Return the number of the request that this answers, else None: raw sockets see all."""
        if self._is_raw and self._version == 4:
            data = data[4 * (data[0] & 0xF) :]  # the header of the Internet Protocol
        if len(data) != _HEADER.size + _PAYLOAD.size or data[0] != _REPLY[self._version]:
            return None
        token, number = _PAYLOAD.unpack_from(data, _HEADER.size)
        return int(number) if token == self._token else None


def checksum(data: bytes) -> int:
    """Return the checksum of the Internet protocols (RFC 1071) of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _opened(family: socket.AddressFamily) -> tuple[socket.socket, bool]:
    """Return a socket and whether it is a raw one; raises UsageError."""
    protocol = socket.IPPROTO_ICMPV6 if family == socket.AF_INET6 else socket.IPPROTO_ICMP
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            return socket.socket(family, kind, protocol), kind == socket.SOCK_RAW
        except PermissionError:
            continue
        except OSError as failure:
            raise UsageError(f"this host has no ICMP for that address family: {failure.strerror}") from None
    raise UsageError(
        'ICMP echo is not permitted to this user; as root: sysctl -w net.ipv4.ping_group_range="0 2147483647"'
    )
