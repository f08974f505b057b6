"""Probes by the handshake of the Transmission Control Protocol (TCP): SYN, and the SYN/ACK or reset to it.

The kernel of the target answers, not a program, which is not even told: the last step of a handshake is held
back, and a reset takes its place. Where a port is open, the RTT is the one that the kernel here has measured;
a reset is timed when this program sees it.
"""

import errno
import os
import select
import socket
import struct
import time
from contextlib import closing

from mpx.errors import ConnectionLost
from mpx.net import tcp, tcp_info
from mpx.rtt.method import CALIBRATIONS, Answer, Kind, Noise, loopback_noise_s, wait, waking_noise_s

MANY_UNANSWERED = 30  # more than can be outstanding within `lost_after_s`
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # a reset: neither side keeps state of the connection
_ICMP_ERRORS = {  # IP_RECVERR, IPV6_RECVERR of Linux; the socket module has no names for them
    socket.AF_INET: (socket.IPPROTO_IP, 11),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 25),
}
_ERROR = struct.Struct("=IBBBBII")  # struct sock_extended_err: errno, origin, ...; then the sender's address
_FROM_ICMP = (2, 3)  # origins, of either version


class HandshakeMethod:
    """Probes the port of `address`, each time with a new connection that carries no data."""

    kind: Kind = "handshake"
    lost_after_s = 1.0  # then the kernel sends the SYN again, and an answer may be to either
    sees_loss = True
    retransmissions = None

    def __init__(self, address: tcp.Address) -> None:
        self.name = f"TCP handshake (port {address[1]})"
        self.is_open = False  # whether the last answer was not a reset
        self._address = address
        self._trouble = ""
        self._unanswered = 0  # since the last answer
        self._poll = select.poll()
        self._opening: dict[int, tuple[int, float, socket.socket]] = {}  # number, when it left; by descriptor

    @property
    def trouble(self) -> str:
        """As Method."""
        if self.is_open and self._unanswered >= MANY_UNANSWERED:
            return (
                f"none of the last {self._unanswered}: the server does not accept connections, or limits them"
            )
        return self._trouble

    def ask(self, number: int) -> float:
        """As Method."""
        self._forget(time.monotonic() - self.lost_after_s)
        self._unanswered += 1
        family = tcp.family_of(self._address[0])
        try:
            opening = socket.socket(family, socket.SOCK_STREAM)
        except OSError as failure:
            raise ConnectionLost(f"cannot probe {tcp.show(self._address)}: {failure.strerror}") from None
        opening.setblocking(False)
        opening.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        opening.setsockopt(*_ICMP_ERRORS[family], 1)
        # At a client this holds the last step back, up to 0.2 s, for data that could go with it. Servers log
        # connections that end before anything is said: XRootD in two lines, ten times a second.
        opening.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
        sent_s = time.monotonic()
        error = opening.connect_ex(self._address)
        if error in (0, errno.EINPROGRESS):
            self._opening[opening.fileno()] = number, sent_s, opening
            self._poll.register(opening, select.POLLOUT)
        else:
            self._trouble = os.strerror(error)
            opening.close()
        return sent_s

    def answers(self, until_s: float) -> list[Answer]:
        """As Method."""
        found: list[Answer] = []
        while not found and (ready := wait(self._poll, until_s)):
            now_s = time.monotonic()
            for descriptor, events in ready:
                self._poll.unregister(descriptor)
                number, sent_s, opened = self._opening.pop(descriptor)
                with opened:
                    refused = _refused_on_the_way(opened) if events & select.POLLERR else ""
                    error = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if not refused and error in (0, errno.ECONNREFUSED):
                        self.is_open = not error
                        self._unanswered = 0
                        found.append(Answer(number, _rtt_s(opened, now_s - sent_s)))
                    else:
                        self._trouble = refused or os.strerror(error)
        return found

    def noise(self) -> Noise:
        """As Method."""
        here = "::1" if ":" in self._address[0] else "127.0.0.1"
        with socket.socket(tcp.family_of(here), socket.SOCK_STREAM) as peer:
            peer.bind((here, 0))
            if self.is_open:
                peer.listen(2 * CALIBRATIONS)  # as they are not accepted
            with closing(HandshakeMethod(peer.getsockname()[:2])) as method:
                noise_s = loopback_noise_s(method)
        if self.is_open:
            return Noise(noise_s, "handshakes over loopback, timed by the kernel")
        return Noise(
            noise_s + waking_noise_s(), "resets over loopback, and how late this program is woken up"
        )

    def close(self) -> None:
        """Close the connections that are still opening."""
        self._forget(float("inf"))

    def _forget(self, before_s: float) -> None:
        """Give up the handshakes that began before that time."""
        for descriptor, (_, sent_s, opening) in list(self._opening.items()):
            if sent_s < before_s:
                del self._opening[descriptor]
                self._poll.unregister(descriptor)
                opening.close()


def _refused_on_the_way(opened: socket.socket) -> str:
    """Return who refused a connection by ICMP, as firewalls do, and how; empty where the target reset it.

    Linux tells the two apart since about 5.8; before that a refusal by ICMP passes for a reset.
    """
    try:
        _, ancillary, _, _ = opened.recvmsg(0, 256, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
    except OSError:
        return ""
    for level, kind, value in ancillary:
        if (level, kind) == _ICMP_ERRORS[opened.family] and len(value) > _ERROR.size:
            error, origin, *_ = _ERROR.unpack_from(value)
            if origin in _FROM_ICMP:
                at, size = (
                    (8, 16) if opened.family == socket.AF_INET6 else (4, 4)
                )  # within the socket address
                raw = value[_ERROR.size + at : _ERROR.size + at + size]
                who = socket.inet_ntop(opened.family, raw) if len(raw) == size else "an unknown host"
                how = "a firewall refuses" if error == errno.ECONNREFUSED else os.strerror(error)
                return f"{how} (ICMP from {who})"
    return ""


def _rtt_s(opened: socket.socket, seen_s: float) -> float:
    """Return the RTT of the handshake as the kernel measured it, or else as this program saw it."""
    info = tcp_info.tcp_info(opened)
    if info and not info.retransmits and 0 < info.least_rtt_s < seen_s:
        return info.least_rtt_s
    return seen_s
