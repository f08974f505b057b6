"""The echo: sends the probes of clients back, so that they can measure the round-trip time (RTT).

It is of no use to anybody who wants to harm others. A question must carry the token that FEAT told a session
and come from that session's address. The answer goes there, with as many bytes, from the address that was
asked, at a rate that is bounded for each session: who forges addresses cannot even use up what others may
ask. What has no token the kernel drops, and what has that of a session which asks far too often.
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

from mpx.endpoints.ftp.extensions import echo as echo_wire
from mpx.endpoints.ftp.extensions.echo import EchoPlace
from mpx.engine.token_bucket import TokenBucket
from mpx.net import tcp
from mpx.rtt.timestamps import Arrival, receive, stamp_arrivals
from mpx.serve.echo_filter import attach

RATE, BURST = 200.0, 50  # questions of one session: ten at once each second are well below
BORNE_RATE, BORNE_BURST = 1000.0, 500  # those of one session that are looked at and not answered; ...
MUTED_S = 1.0  # ... of one that sends more nothing is looked at for so long
_IP_PKTINFO = 8  # Linux; the socket module has no name for it before Python 3.14
_PKTINFO_4 = struct.Struct("=I4s4s")  # interface, our address, address in the header
_PKTINFO_6 = struct.Struct("=16sI")  # our address, interface

_log = logging.getLogger(__name__)


class Echo:
    """Answers the probes of those it admitted, at one address of the server, until `close`.

    Its port is the server's, or any if that is taken. Raises OSError when there is none, RuntimeError when no
    thread can be had.
    """

    def __init__(self, host: str, port: int, pulse: Callable[[str, float, float], float]) -> None:
        """`pulse` begins a rate pulse: for which client, how long, and the share that is left."""
        self._pulse = pulse
        # Bytes are hashed with a secret of this process: how long a look-up takes tells nothing of a token.
        self._admitted: dict[bytes, _Admitted] = {}  # by token
        self._muted: dict[bytes, float] = {}  # until when, by token
        self._filtering = threading.Lock()  # of these two, and what the kernel knows of them
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
        with self._filtering:
            self._admitted[token] = _Admitted(host)
            self._filter()
        return EchoPlace(self._port, token)

    def dismiss(self, place: EchoPlace) -> None:
        """Answer that client no more."""
        with self._filtering:
            self._admitted.pop(place.token, None)
            self._muted.pop(place.token, None)
            self._filter()

    def close(self) -> None:
        """Stop answering."""
        self._stopping.set()
        with suppress(OSError):  # it is not connected, and wakes up all the same
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _filter(self) -> None:
        """Have the kernel let through who is admitted and not muted."""
        try:
            attach(self._socket, self._admitted.keys() - self._muted.keys())
        except OSError as error:  # the kernel has no room for it
            _log.info("no kernel filter for the echo, so it checks every datagram itself: %s", error.strerror)
            attach(self._socket, None)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while True:
            try:
                poll.poll(self._unmute())
                if self._stopping.is_set():
                    return
                self._answer(receive(self._socket, echo_wire.BYTES + 1))
            except OSError:
                pass  # nothing there after all, no room, or no way back: a probe is lost
            except Exception:
                _log.exception("a probe was not answered")

    def _unmute(self) -> float | None:
        """Listen again to whose time is over; return when the next one's is, in ms from now."""
        if not self._muted:
            return None
        now_s = time.monotonic()
        with self._filtering:
            over = [token for token, until_s in self._muted.items() if until_s <= now_s]
            for token in over:
                del self._muted[token]
            if over:
                self._filter()
            return 1000 * (min(self._muted.values()) - now_s) + 1 if self._muted else None

    def _answer(self, asked: Arrival) -> None:
        token = echo_wire.token_in(asked.data)
        who = self._admitted.get(token)
        if who is None:
            return
        pulse = echo_wire.parse_pulse_request(asked.data)
        is_asked = pulse is not None or echo_wire.is_question(asked.data)
        if not is_asked or asked.sender[0] != who.host or not who.allowance.take(asked.at_s):
            if not who.borne.take(asked.at_s):
                self._mute(token, asked.at_s + MUTED_S)
            return
        if pulse:
            reply = echo_wire.answer_pulse(asked.data, self._pulse(who.host, pulse.seconds, pulse.share))
        else:
            reply = echo_wire.answer(asked.data, time.monotonic() - asked.received_s)
        self._socket.sendmsg([reply], _from_where_it_came(asked), 0, asked.sender)

    def _mute(self, token: bytes, until_s: float) -> None:
        with self._filtering:
            if token in self._admitted:
                self._muted[token] = until_s
                self._filter()


class _Admitted:
    """The client of one session: its address, how often it may ask, and how often in vain."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.allowance = TokenBucket(RATE, BURST)
        self.borne = TokenBucket(BORNE_RATE, BORNE_BURST)


def _bound(host: str, port: int) -> socket.socket:
    echo = socket.socket(tcp.family_of(host), socket.SOCK_DGRAM)
    try:
        if echo.family == socket.AF_INET6:
            echo.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            echo.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            echo.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        stamp_arrivals(echo)
        attach(echo, ())
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
