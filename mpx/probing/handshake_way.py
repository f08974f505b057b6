"""Probes by the handshake of the Transmission Control Protocol (TCP): SYN, and the SYN/ACK or reset to it.

The other side's kernel answers, no program. Where something listens it is the kernel here, too, that tells
the RTT; a reset is timed when this program sees it.
"""

import errno
import os
import select
import socket
import struct
import time
from contextlib import closing

from mpx import tcp
from mpx.errors import ConnectionLost
from mpx.probing.way import CALIBRATIONS, Answer, Noise, loopback_noise_s, wait, waking_noise_s

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # no farewell: neither side remembers the connection


class HandshakeWay:
    """Asks at the port of `address`, for each probe with a connection of its own that carries nothing."""

    lost_after_s = 1.0  # then the kernel sends the SYN again, and nobody could tell which one was answered

    def __init__(self, address: tcp.Address) -> None:
        self.name = f"TCP handshake (port {address[1]})"
        self.trouble = ""
        self.is_open = False  # whether somebody listened at last
        self._address = address
        self._poll = select.poll()
        self._opening: dict[int, tuple[int, float, socket.socket]] = {}  # number, when it left; by descriptor

    def ask(self, number: int) -> float:
        """As Way."""
        self._forget(time.monotonic() - self.lost_after_s)
        try:
            opening = socket.socket(tcp.family_of(self._address[0]), socket.SOCK_STREAM)
        except OSError as failure:
            raise ConnectionLost(f"cannot probe {tcp.show(self._address)}: {failure.strerror}") from None
        opening.setblocking(False)
        opening.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        sent_s = time.monotonic()
        error = opening.connect_ex(self._address)
        if error in (0, errno.EINPROGRESS):
            self._opening[opening.fileno()] = number, sent_s, opening
            self._poll.register(opening, select.POLLOUT)
        else:
            self.trouble = os.strerror(error)
            opening.close()
        return sent_s

    def answers(self, until_s: float) -> list[Answer]:
        """As Way."""
        found: list[Answer] = []
        while not found and (ready := wait(self._poll, until_s)):
            now_s = time.monotonic()
            for descriptor, _ in ready:
                self._poll.unregister(descriptor)
                number, sent_s, opened = self._opening.pop(descriptor)
                with opened:
                    error = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if error in (0, errno.ECONNREFUSED):
                        self.is_open = not error
                        found.append(Answer(number, _rtt_s(opened, now_s - sent_s)))
                    else:
                        self.trouble = os.strerror(error)
        return found

    def noise(self) -> Noise:
        """As Way."""
        here = "::1" if ":" in self._address[0] else "127.0.0.1"
        with socket.socket(tcp.family_of(here), socket.SOCK_STREAM) as peer:
            peer.bind((here, 0))
            if self.is_open:
                peer.listen(2 * CALIBRATIONS)  # for nobody accepts them
            with closing(HandshakeWay(peer.getsockname()[:2])) as way:
                noise_s = loopback_noise_s(way)
        if self.is_open:
            return Noise(noise_s, "handshakes over loopback, timed by the kernel")
        return Noise(noise_s + waking_noise_s(), "resets over loopback, and how late this program wakes up")

    def close(self) -> None:
        """Close what is still opening."""
        self._forget(float("inf"))

    def _forget(self, before_s: float) -> None:
        """Give up the handshakes that began before."""
        for descriptor, (_, sent_s, opening) in list(self._opening.items()):
            if sent_s < before_s:
                del self._opening[descriptor]
                self._poll.unregister(descriptor)
                opening.close()


def _rtt_s(opened: socket.socket, seen_s: float) -> float:
    """Return what the kernel says the handshake took, where it can, else when this program saw its end."""
    info = tcp.tcp_info(opened)
    if info and not info.retransmits and 0 < info.least_rtt_s < seen_s:
        return info.least_rtt_s
    return seen_s
