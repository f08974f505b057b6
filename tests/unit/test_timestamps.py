"""When the kernel received something: told by real sockets, and by a script of what a kernel may say."""

import socket
import struct
import time
from collections.abc import Callable

import pytest

from mpx.rtt.timestamps import receive, stamp_arrivals

LATER_S = 0.05


def test_the_time_until_the_program_looked_is_known(eventually: Callable[..., None]) -> None:
    """The kernel begins to stamp a moment after it was asked to."""
    with socket.socket(type=socket.SOCK_DGRAM) as end, socket.socket(type=socket.SOCK_DGRAM) as other:
        end.bind(("127.0.0.1", 0))
        stamp_arrivals(end)

        def is_stamped() -> bool:
            before_s = time.monotonic()
            other.sendto(b"x", end.getsockname())
            time.sleep(LATER_S)
            arrival = receive(end)
            assert (arrival.data, arrival.sender[0]) == (b"x", "127.0.0.1")
            assert before_s - 1e-4 < arrival.received_s  # two clocks are read one after the other
            return arrival.waited_s >= LATER_S

        eventually(is_stamped)


class Scripted:
    """A socket that has one datagram, and this to say of when it came."""

    def __init__(self, *told: tuple[int, int, bytes]) -> None:
        self._told = list(told)

    def recvmsg(self, *_: int) -> tuple[bytes, list[tuple[int, int, bytes]], int, None]:
        return b"x", self._told, 0, None


def stamp(ago_s: float) -> bytes:
    seconds, nanoseconds = divmod(time.time_ns() - round(ago_s * 1e9), 1_000_000_000)
    return struct.pack("=qq", seconds, nanoseconds)


def test_a_stamp_counts() -> None:
    assert receive(Scripted((socket.SOL_SOCKET, 35, stamp(2.0)))).waited_s >= 2.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "told",
    [
        [],
        [(socket.SOL_SOCKET, 35, b"")],
        [(socket.SOL_SOCKET, 35, struct.pack("=ii", 1, 1))],  # as kernels of 32 bits write it
        [(socket.SOL_SOCKET, 36, stamp(2.0))],
        [(socket.SOL_SOCKET, 35, stamp(3600.0))],  # the clock was set forward in between
        [(socket.SOL_SOCKET, 35, stamp(-3600.0))],  # or back
    ],
)
def test_where_the_kernel_does_not_tell_nothing_waited(told: list[tuple[int, int, bytes]]) -> None:
    arrival = receive(Scripted(*told))  # type: ignore[arg-type]
    assert arrival.waited_s == 0.0
    assert arrival.received_s == arrival.at_s
