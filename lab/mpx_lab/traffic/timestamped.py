"""When the kernel received a datagram, so that the time until a program woke up is known."""

import socket
import struct
import time
from dataclasses import dataclass

_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("=qq")
_ANCILLARY_BYTES = 64
_LARGEST_WAIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Datagram:
    """One that was received."""

    data: bytes
    sender: tuple[str, int]
    at_s: float  # when the program had it, monotonic clock
    waited_s: float  # how long the kernel had it by then


def stamp_arrivals(connection: socket.socket) -> None:
    """Have the kernel note when datagrams arrive."""
    connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


def receive(connection: socket.socket) -> Datagram:
    """Receive one datagram; raises what recvmsg raises."""
    data, ancillary, _, sender = connection.recvmsg(2048, _ANCILLARY_BYTES)
    at_s, wall_ns = time.monotonic(), time.clock_gettime_ns(time.CLOCK_REALTIME)
    waited_s = 0.0
    for level, kind, value in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = _TIMESPEC.unpack(value[: _TIMESPEC.size])
            waited_s = (wall_ns - seconds * 1_000_000_000 - nanoseconds) / 1e9
    if not 0 <= waited_s < _LARGEST_WAIT_S:  # the wall clock was set in between
        waited_s = 0.0
    return Datagram(data, (sender[0], sender[1]), at_s, waited_s)
