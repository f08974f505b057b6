"""Probes over an idle GridFTP session: NOOP, and the reply to it.

Any server answers that, whether it knows us or not. The server's time to answer is in the RTT, and what the
network loses comes later, as the Transmission Control Protocol (TCP) sends it again.
"""

import math
import select
import time
from collections import deque

from mpx import tcp
from mpx.errors import ConnectionLost
from mpx.gridftp_session import Session
from mpx.gridftp_wire import ReplyReader, command
from mpx.probing.way import LOST_AFTER_S, Answer, Noise, wait
from mpx.timestamped import receive, stamp_arrivals

_NOOP = command("NOOP")


class SessionWay:
    """Asks on `session`, which nobody else uses; closing it is up to its owner."""

    lost_after_s = LOST_AFTER_S

    def __init__(self, session: Session) -> None:
        self.name = f"idle GridFTP session (NOOP at TCP port {session.location.port})"
        self.trouble = ""
        self._session = session
        self._socket = session.connection
        self._socket.setblocking(False)
        stamp_arrivals(self._socket)
        self._reader = ReplyReader()
        self._waiting: deque[tuple[int, float]] = deque()  # number, when it left; replies keep the order
        self._least_s = math.inf
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def ask(self, number: int) -> float:
        """As Way."""
        sent_s = time.monotonic()
        try:
            self._socket.send(_NOOP)
        except BlockingIOError:
            self.trouble = "the connection takes no more"
        except OSError as failure:
            raise ConnectionLost(
                f"the session at {self._session.peer} was lost: {failure.strerror}"
            ) from None
        else:
            self._waiting.append((number, sent_s))
        return sent_s

    def answers(self, until_s: float) -> list[Answer]:
        """As Way."""
        if not wait(self._poll, until_s):
            return []
        try:
            arrival = receive(self._socket)
            replies = self._reader.feed(arrival.data)
        except BlockingIOError:
            return []
        except (OSError, ValueError) as failure:
            raise ConnectionLost(f"the session at {self._session.peer} was lost: {failure}") from None
        if not arrival.data:
            raise ConnectionLost(f"{self._session.peer} closed the session")
        found = []
        for reply in replies:
            if reply.code == 421 or not self._waiting:
                raise ConnectionLost(f"{self._session.peer} ends the session: {reply.reason}")
            number, sent_s = self._waiting.popleft()
            found.append(Answer(number, max(0.0, arrival.received_s - sent_s)))
        self._least_s = min([self._least_s, *(answer.rtt_s for answer in found)])
        return found

    def noise(self) -> Noise:
        """As Way."""
        info = tcp.tcp_info(self._socket)
        how = "the server's time to answer: the shortest NOOP against the shortest RTT that the kernel saw"
        added_s = self._least_s - info.least_rtt_s if info and self._least_s < math.inf else 0.0
        return Noise(max(0.0, added_s), how, is_least=True)
