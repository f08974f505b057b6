"""Probes over the echo of `mpx serve`: datagrams of the User Datagram Protocol (UDP).

Both kernels note when a datagram arrived, and the answer says how long the server held the question: neither
program's waking up is in the RTT.
"""

import secrets
import socket
import time

from mpx import echo_wire, tcp
from mpx.gridftp_session import Session
from mpx.gridftp_wire import command
from mpx.probing.datagrams import Datagrams
from mpx.probing.way import CALIBRATIONS, LOST_AFTER_S, Answer, Noise, p99_s
from mpx.timestamped import Arrival, receive, stamp_arrivals

KEEP_ALIVE_S = 30.0  # mpx serve ends sessions that say nothing for 120 s, and answers only who has one


class EchoWay:
    """Asks the echo at `address`; keeps `session` alive, without which there is no answer."""

    lost_after_s = LOST_AFTER_S

    def __init__(self, session: Session, address: tcp.Address) -> None:
        self.name = f"echo of mpx serve (UDP port {address[1]})"
        self._session = session
        self._alive_s = time.monotonic()
        self._token = secrets.randbits(64)
        self._datagrams = Datagrams(socket.socket(tcp.family_of(address[0]), socket.SOCK_DGRAM), *address)

    @property
    def trouble(self) -> str:
        """As Way."""
        return self._datagrams.trouble

    def ask(self, number: int) -> float:
        """As Way."""
        sent_s = self._datagrams.send(number, echo_wire.question(self._token, number))
        if sent_s > self._alive_s + KEEP_ALIVE_S:
            self._alive_s = sent_s
            while self._session.poll_reply(0.0):  # to those before
                pass
            self._session.send(command("NOOP"))
        return sent_s

    def answers(self, until_s: float) -> list[Answer]:
        """As Way."""
        found = []
        for arrival in self._datagrams.arrivals(until_s):
            answer = echo_wire.parse_answer(arrival.data)
            if answer and answer.token == self._token:
                sent_s = self._datagrams.take_sent(answer.number)
                if sent_s is not None:
                    found.append(Answer(answer.number, _rtt_s(sent_s, arrival, answer.held_s)))
        return found

    def noise(self) -> Noise:
        """As Way."""
        how = "questions and answers over loopback; the time that the server held a question is taken out"
        return Noise(_loopback_noise_s(), how)

    def close(self) -> None:
        """Close the socket; the session is up to its owner."""
        self._datagrams.close()


def _rtt_s(sent_s: float, arrival: Arrival, held_s: float) -> float:
    return max(0.0, arrival.received_s - sent_s - held_s)


def _loopback_noise_s() -> float:
    """Return what both ends of an echo add, on sockets of our own."""
    rtts = []
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there,
    ):
        for end in (here, there):
            end.settimeout(LOST_AFTER_S)
            end.bind(("127.0.0.1", 0))
            stamp_arrivals(end)
        for number in range(CALIBRATIONS):
            sent_s = time.monotonic()
            here.sendto(echo_wire.question(0, number), there.getsockname())
            asked = receive(there)
            held_s = time.monotonic() - asked.received_s
            there.sendto(echo_wire.answer(asked.data, held_s) or b"", here.getsockname())
            rtts.append(_rtt_s(sent_s, receive(here), held_s))
    return p99_s(rtts)
