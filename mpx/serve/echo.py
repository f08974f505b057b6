"""The echo: sends the probes of clients back, so that they can measure the round-trip time (RTT).

It is of no use to anybody who wants to harm others: it answers only addresses that have a session open (a
TCP handshake proves that they are not forged), at a bounded rate, with as many bytes as were asked with, and
from the address that was asked.
"""

import logging
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from mpx import echo_wire, tcp
from mpx.timestamped import Arrival, receive, stamp_arrivals

_log = logging.getLogger(__name__)

_IP_PKTINFO = 8  # Linux; the socket module has no name for it before Python 3.14
_PKTINFO_4 = struct.Struct("=I4s4s")  # interface, our address, address in the header
_PKTINFO_6 = struct.Struct("=16sI")  # our address, interface


class Allowance:
    """How often a source may ask: RATE times a second, BURST at once (the generic cell rate algorithm)."""

    RATE = 200.0  # ten at once each second and many clients behind one address are well below
    BURST = 50
    _MOST_SOURCES = 1024

    def __init__(self) -> None:
        self._free_s: dict[str, float] = {}  # when all that a source asked is paid for

    def take(self, source: str, now_s: float) -> bool:
        """Tell whether `source` may be answered now, and count it if so."""
        free_s = max(now_s, self._free_s.get(source, now_s))
        if free_s - now_s > (self.BURST - 1) / self.RATE:
            return False
        if len(self._free_s) >= self._MOST_SOURCES:
            self._free_s = {other: at_s for other, at_s in self._free_s.items() if at_s > now_s}
        self._free_s[source] = free_s + 1 / self.RATE
        return True


class Echo:
    """Answers probes at one address of the server until `close`; `is_client` says who has a session.

    Its port is the server's, or any if that is taken. Raises OSError when there is none.
    """

    def __init__(self, host: str, port: int, is_client: Callable[[str], bool]) -> None:
        self._is_client = is_client
        self._allowance = Allowance()
        self._socket = _bound(host, port)
        self._stopping = threading.Event()
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="mpx-serve-echo", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._stopping.set()
        with suppress(OSError):  # it is not connected, and wakes up all the same
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while True:
            poll.poll()
            if self._stopping.is_set():
                return
            with suppress(OSError):  # nothing there after all, no room, or no way back: a probe is lost
                self._answer(receive(self._socket, echo_wire.BYTES + 1))

    def _answer(self, asked: Arrival) -> None:
        source = asked.sender[0]
        if not self._is_client(source) or not self._allowance.take(source, asked.at_s):
            return
        reply = echo_wire.answer(asked.data, time.monotonic() - asked.received_s)
        if reply:
            self._socket.sendmsg([reply], _from_where_it_came(asked), 0, asked.sender)


def _bound(host: str, port: int) -> socket.socket:
    echo = socket.socket(tcp.family_of(host), socket.SOCK_DGRAM)
    try:
        if echo.family == socket.AF_INET6:
            echo.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            echo.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            echo.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        stamp_arrivals(echo)
        echo.setblocking(False)
        try:
            echo.bind((host, port))
        except OSError as error:
            _log.info("UDP port %d is taken, the echo takes another: %s", port, error.strerror)
            echo.bind((host, 0))
    except OSError:
        echo.close()
        raise
    return echo


def _from_where_it_came(asked: Arrival) -> list[tuple[int, int, bytes]]:
    """Return what makes an answer leave from the address that was asked, where we have several."""
    for level, kind, value in asked.ancillary:
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
            _, ours, _ = _PKTINFO_4.unpack(value)
            return [(level, kind, _PKTINFO_4.pack(0, ours, bytes(4)))]
        if (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
            return [(level, kind, value)]
    return []
