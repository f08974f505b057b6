"""Probes over the echo of `mpx serve`: datagrams of the User Datagram Protocol (UDP).

Both kernels note when a datagram arrived, and the answer says how long the server held the probe: so the time
until either program runs is not in the RTT.
"""

import secrets
import socket
import time

from mpx.endpoints.ftp.extensions import echo
from mpx.endpoints.ftp.extensions.echo import EchoPlace
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import command
from mpx.errors import ConnectionLost
from mpx.net import tcp
from mpx.rtt.method import CALIBRATION_S, CALIBRATIONS, LOST_AFTER_S, Answer, Kind, Noise
from mpx.rtt.methods.datagrams import Datagrams
from mpx.rtt.series import p99
from mpx.rtt.timestamps import receive, stamp_arrivals

KEEP_ALIVE_S = 30.0  # mpx serve ends idle sessions, and answers only clients that have one


class EchoMethod:
    """Probes the echo at `place` of `host`; keeps `session` alive, without which there is no answer.

    Raises OSError where no socket can be opened.
    """

    kind: Kind = "echo"
    lost_after_s = LOST_AFTER_S
    sees_loss = True
    retransmissions = None

    def __init__(
        self, session: ClientSession, host: str, place: EchoPlace, *, can_pulse: bool = False
    ) -> None:
        self.can_pulse = can_pulse  # the server can make rate pulses in the data that it sends
        self._pulse = (0, 0.0)  # the number of the last pulse that was confirmed, and its depth
        self.name = f"echo of mpx serve (UDP port {place.port})"
        self._session = session
        self._alive_s = time.monotonic()
        self._unanswered = 0  # NOOPs
        self._token = place.token
        connection = socket.socket(tcp.family_of(host), socket.SOCK_DGRAM)
        self._datagrams = Datagrams(connection, host, place.port)
        self._datagrams.watch(session.connection, self._read_session)

    @property
    def trouble(self) -> str:
        """As Method."""
        return self._datagrams.trouble

    def ask(self, number: int) -> float:
        """As Method."""
        sent_s = self._datagrams.send(number, echo.question(self._token, number))
        if sent_s > self._alive_s + KEEP_ALIVE_S:
            self._alive_s = sent_s
            self._session.send(command("NOOP"))
            self._unanswered += 1
        return sent_s

    def answers(self, until_s: float) -> list[Answer]:
        """As Method."""
        found = []
        for arrival in self._datagrams.arrivals(until_s):
            self._pulse = echo.parse_pulse_answer(arrival.data, self._token) or self._pulse
            answer = echo.parse_answer(arrival.data)
            if answer and answer.token == self._token:
                sent_s = self._datagrams.take_sent(answer.number)
                if sent_s is not None:
                    rtt_s = arrival.received_s - sent_s - answer.held_s
                    if rtt_s >= 0:
                        found.append(Answer(answer.number, rtt_s))
                    else:
                        self._datagrams.trouble = (
                            "the echo claims to have held a probe for longer than we waited"
                        )
        return found

    def request_pulse(self, number: int, seconds: float, share: float) -> None:
        """Ask the server to send at this share of its rate for so long; numbers rise."""
        self._datagrams.send_other(echo.ask_for_pulse(self._token, number, seconds, share))

    def pulse_depth(self, number: int) -> float:
        """Return by which share the rate was reduced in that pulse; 0 where that was not confirmed."""
        answered, depth = self._pulse
        return depth if answered == number else 0.0

    def noise(self) -> Noise:
        """As Method."""
        how = "measured over loopback, without the time that the server held a probe"
        return Noise(_loopback_noise_s(), how)

    def close(self) -> None:
        """Close the socket; the session is closed by its owner."""
        self._datagrams.close()

    def _read_session(self) -> None:
        """Read the replies to our NOOPs; raises ConnectionLost for any other, and where the session ends."""
        reply = self._session.poll_reply(0.0)
        while reply:
            if not self._unanswered:
                raise ConnectionLost(f"unexpected reply of {self._session.peer}: {reply.reason}")
            self._unanswered -= 1
            reply = self._session.waiting_reply()


def _loopback_noise_s() -> float:
    """Return what both ends of an echo add, on sockets of our own; raises OSError where nothing comes."""
    rtts, token = [], secrets.token_bytes(echo.TOKEN_BYTES)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there,
    ):
        for end in (here, there):
            end.settimeout(CALIBRATION_S)
            end.bind(("127.0.0.1", 0))
            stamp_arrivals(end)
        for number in range(CALIBRATIONS):
            sent_s = time.monotonic()
            here.sendto(echo.question(token, number), there.getsockname())
            asked = receive(there)
            held_s = time.monotonic() - asked.received_s
            there.sendto(echo.answer(asked.data, held_s), here.getsockname())
            rtts.append(max(0.0, receive(here).received_s - sent_s - held_s))
    return p99(rtts)
