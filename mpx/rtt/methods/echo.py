"""Probes over the echo of `mpx serve`: datagrams of the User Datagram Protocol (UDP).

Both kernels note when a datagram arrived, and the answer says how long the server held the question: neither
program's waking up is in the RTT.
"""

import secrets
import socket
import time

from mpx.endpoints.ftp.extensions import echo
from mpx.endpoints.ftp.extensions.echo import EchoPlace
from mpx.endpoints.ftp.session import Session
from mpx.endpoints.ftp.wire import command
from mpx.errors import ConnectionLost
from mpx.net import tcp
from mpx.rtt.method import CALIBRATION_S, CALIBRATIONS, LOST_AFTER_S, Answer, Kind, Noise
from mpx.rtt.methods.datagrams import Datagrams
from mpx.rtt.series import p99
from mpx.rtt.timestamps import receive, stamp_arrivals

KEEP_ALIVE_S = 30.0  # mpx serve ends sessions that say nothing for long, and answers only who has one


class EchoWay:
    """Asks the echo at `place` of `host`; keeps `session` alive, without which there is no answer.

    Raises OSError where there is no socket to be had.
    """

    kind: Kind = "echo"
    lost_after_s = LOST_AFTER_S
    sees_loss = True
    retransmissions = None

    def __init__(self, session: Session, host: str, place: EchoPlace, *, can_dip: bool = False) -> None:
        self.can_dip = can_dip  # data of the server can be sent more slowly for a moment
        self._dipped = (0, 0.0)  # the number of the last dip that was answered, and its depth
        self.name = f"echo of mpx serve (UDP port {place.port})"
        self._session = session
        self._alive_s = time.monotonic()
        self._unanswered = 0  # NOOPs
        self._token = place.token
        connection = socket.socket(tcp.family_of(host), socket.SOCK_DGRAM)
        self._datagrams = Datagrams(connection, host, place.port)
        self._datagrams.heed(session.connection, self._heed_session)

    @property
    def trouble(self) -> str:
        """As Way."""
        return self._datagrams.trouble

    def ask(self, number: int) -> float:
        """As Way."""
        sent_s = self._datagrams.send(number, echo.question(self._token, number))
        if sent_s > self._alive_s + KEEP_ALIVE_S:
            self._alive_s = sent_s
            self._session.send(command("NOOP"))
            self._unanswered += 1
        return sent_s

    def answers(self, until_s: float) -> list[Answer]:
        """As Way."""
        found = []
        for arrival in self._datagrams.arrivals(until_s):
            self._dipped = echo.parse_dipped(arrival.data, self._token) or self._dipped
            answer = echo.parse_answer(arrival.data)
            if answer and answer.token == self._token:
                sent_s = self._datagrams.take_sent(answer.number)
                if sent_s is not None:
                    rtt_s = arrival.received_s - sent_s - answer.held_s
                    if rtt_s >= 0:
                        found.append(Answer(answer.number, rtt_s))
                    else:
                        self._datagrams.trouble = "the echo says it held a question for longer than we waited"
        return found

    def ask_to_dip(self, number: int, seconds: float, share: float) -> None:
        """Ask the server to send this share of its data for so long; numbers rise."""
        self._datagrams.say(echo.ask_to_dip(self._token, number, seconds, share))

    def dipped(self, number: int) -> float:
        """Return how much less was sent in that dip, as a share; 0 where it was not made or not answered."""
        answered, depth = self._dipped
        return depth if answered == number else 0.0

    def noise(self) -> Noise:
        """As Way."""
        how = "questions and answers over loopback; the time that the server held a question is taken out"
        return Noise(_loopback_noise_s(), how)

    def close(self) -> None:
        """Close the socket; the session is up to its owner."""
        self._datagrams.close()

    def _heed_session(self) -> None:
        """Take the replies to our NOOPs; raises ConnectionLost for any other, and where the session ends."""
        reply = self._session.poll_reply(0.0)
        while reply:
            if not self._unanswered:
                raise ConnectionLost(f"{self._session.peer} says what nobody asked for: {reply.reason}")
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
