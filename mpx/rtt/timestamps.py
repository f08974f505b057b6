"""When the kernel received data, so that the time until a program was woken up is known."""

import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("=qq")  # 32-bit kernels write half of that, which is ignored
_ANCILLARY_BYTES = 128
_LARGEST_WAIT_S = 10.0
_ONE_MOMENT_S, _TRIES = 5e-6, 5


@dataclass(frozen=True, slots=True)
class Arrival:
    """A datagram, or bytes of a stream."""

    data: bytes
    sender: Any  # the address as the socket module writes it; None of a stream
    at_s: float  # when the program had it, monotonic clock
    waited_s: float  # how long the kernel had it by then; of a stream: its last bytes
    ancillary: list[tuple[int, int, bytes]]  # other control messages of the kernel

    @property
    def received_s(self) -> float:
        """When the kernel had it, monotonic clock."""
        return self.at_s - self.waited_s


def stamp_arrivals(connection: socket.socket) -> None:
    """Have the kernel note when something arrives."""
    connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


def receive(connection: socket.socket, size_bytes: int = 2048) -> Arrival:
    """Receive one datagram, or what has come of a stream; raises what recvmsg raises."""
    data, ancillary, _, sender = connection.recvmsg(size_bytes, _ANCILLARY_BYTES)
    at_s, wall_ns = _clocks()
    waited_s = 0.0
    for level, kind, value in ancillary:
        if (level, kind, len(value)) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS, _TIMESPEC.size):
            seconds, nanoseconds = _TIMESPEC.unpack(value)
            waited_s = (wall_ns - seconds * 1_000_000_000 - nanoseconds) / 1e9
    if not 0 <= waited_s < _LARGEST_WAIT_S:  # the wall clock was set in between
        waited_s = 0.0
    return Arrival(data, sender, at_s, waited_s, ancillary)


def _clocks() -> tuple[float, int]:
    """Return the monotonic clock (seconds) and the wall clock (nanoseconds) of one moment.

    If the program were suspended between the two, that time would count as a wait in the kernel.
    """
    for _ in range(_TRIES):
        at_s, wall_ns = time.monotonic(), time.clock_gettime_ns(time.CLOCK_REALTIME)
        if time.monotonic() - at_s < _ONE_MOMENT_S:
            break
    return at_s, wall_ns
