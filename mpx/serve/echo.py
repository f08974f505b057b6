"""The echo: sends the probes of clients back, so that they can measure the round-trip time (RTT).

It is of no use to anybody who wants to harm others. A question must carry the token that FEAT told a session
and come from that session's address. The answer goes there, with as many bytes, from the address that was
asked, at a rate that is bounded for each session: who forges addresses cannot even use up what others may
ask.
"""

import errno
import ipaddress
import logging
import secrets
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from mpx import echo_wire, tcp
from mpx.echo_wire import EchoPlace
from mpx.serve.allowance import Allowance
from mpx.timestamped import Arrival, receive, stamp_arrivals

RATE, BURST = 200.0, 50  # questions of one session: ten at once each second are well below
HEEDED_RATE, HEEDED_BURST = 5000.0, 500  # datagrams of all the world that are looked at
_PAUSE_S = 0.01  # beyond that: what does not fit into the kernel's buffer meanwhile costs us nothing
_IP_PKTINFO = 8  # Linux; the socket module has no name for it before Python 3.14
_PKTINFO_4 = struct.Struct("=I4s4s")  # interface, our address, address in the header
_PKTINFO_6 = struct.Struct("=16sI")  # our address, interface

_log = logging.getLogger(__name__)


class Echo:
    """Answers the probes of those it admitted, at one address of the server, until `close`.

    Its port is the server's, or any if that is taken. Raises OSError when there is none, RuntimeError when no
    thread can be had.
    """

    def __init__(self, host: str, port: int, dip: Callable[[str, float, float], float]) -> None:
        """`dip` is asked by whoever asks for one: for which client, how long, and the share that is left."""
        self._dip = dip
        # Bytes are hashed with a secret of this process: how long a look-up takes tells nothing of a token.
        self._admitted: dict[bytes, _Admitted] = {}  # by token
        self._heeded = Allowance(HEEDED_RATE, HEEDED_BURST)
        self._socket = _bound(host, port)
        self._stopping = threading.Event()
        self._port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="mpx-serve-echo", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._socket.close()
            raise

    def admit(self, host: str) -> EchoPlace:
        """Answer the client at an address from now on, and return what it needs to know."""
        token = secrets.token_bytes(echo_wire.TOKEN_BYTES)
        self._admitted[token] = _Admitted(host)
        return EchoPlace(self._port, token)

    def dismiss(self, place: EchoPlace) -> None:
        """Answer that client no more."""
        self._admitted.pop(place.token, None)

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
            try:
                self._answer(receive(self._socket, echo_wire.BYTES + 1))
            except OSError:
                pass  # nothing there after all, no room, or no way back: a probe is lost
            except Exception:
                _log.exception("a probe was not answered")
            if not self._heeded.take(time.monotonic()):
                self._stopping.wait(_PAUSE_S)

    def _answer(self, asked: Arrival) -> None:
        dip = echo_wire.parse_dip(asked.data)
        token = dip.token if dip else echo_wire.token_of(asked.data)
        who = self._admitted.get(token) if token else None
        if who is None or asked.sender[0] != who.host:
            return
        if not who.allowance.take(asked.at_s):
            return
        if dip:
            reply = echo_wire.answer_dip(asked.data, self._dip(who.host, dip.seconds, dip.share))
        else:
            reply = echo_wire.answer(asked.data, time.monotonic() - asked.received_s)
        self._socket.sendmsg([reply], _from_where_it_came(asked), 0, asked.sender)


class _Admitted:
    """The client of one session: its address, and how often it may ask."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.allowance = Allowance(RATE, BURST)


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
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            _log.info("UDP port %d: %s; the echo takes another", port, error.strerror)
            echo.bind((host, 0))
    except OSError:
        echo.close()
        raise
    return echo


def _from_where_it_came(asked: Arrival) -> list[tuple[int, int, bytes]]:
    """Return what makes an answer leave from the address that was asked, where we have several.

    By which interface is up to the routes, but for link-local addresses, which mean nothing without one.
    """
    for level, kind, value in asked.ancillary:
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
            _, ours, _ = _PKTINFO_4.unpack(value)
            return [(level, kind, _PKTINFO_4.pack(0, ours, bytes(4)))]
        if (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
            ours, interface = _PKTINFO_6.unpack(value)
            is_local = ipaddress.IPv6Address(ours).is_link_local
            return [(level, kind, _PKTINFO_6.pack(ours, interface if is_local else 0))]
    return []
