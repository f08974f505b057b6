"""Probes over an idle GridFTP session: NOOP, and the reply to it.

Any server answers that, also before a login. The server's time to answer is in the RTT, and a lost probe is
answered late, as the Transmission Control Protocol (TCP) retransmits it.
"""

import math
import select
import time
from collections import deque

from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import ReplyReader, command
from mpx.errors import ConnectionLost
from mpx.net import tcp_info
from mpx.rtt.method import LOST_AFTER_S, Answer, Kind, Noise, wait
from mpx.rtt.timestamps import receive, stamp_arrivals

_NOOP = command("NOOP")


class SessionMethod:
    """Probes on `session`, which nothing else uses; it is closed by its owner."""

    kind: Kind = "session"
    lost_after_s = LOST_AFTER_S
    sees_loss = False

    def __init__(self, session: ClientSession) -> None:
        self.name = f"idle GridFTP session (NOOP at TCP port {session.location.port})"
        self.trouble = ""
        self._session = session
        self._socket = session.connection
        self._socket.setblocking(False)
        stamp_arrivals(self._socket)
        self._reader = ReplyReader()
        self._waiting: deque[tuple[int, float]] = deque()  # number, when it left; replies keep the order
        self._least_s = math.inf
        info = tcp_info.tcp_info(self._socket)  # now: later the kernel's RTT includes servers and queues
        self._handshake_s = info.least_rtt_s if info else None
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    @property
    def retransmissions(self) -> int | None:
        """As Method."""
        info = tcp_info.tcp_info(self._socket)
        return info.retransmits if info else None

    def ask(self, number: int) -> float:
        """As Method."""
        sent_s = time.monotonic()
        try:
            sent_bytes = self._socket.send(_NOOP)
        except BlockingIOError:
            self.trouble = "the send buffer of the connection is full"
            return sent_s
        except OSError as failure:
            raise ConnectionLost(
                f"the session at {self._session.peer} was lost: {failure.strerror}"
            ) from None
        if sent_bytes < len(_NOOP):
            raise ConnectionLost(f"the session at {self._session.peer} accepted only a part of a command")
        self._waiting.append((number, sent_s))
        return sent_s

    def answers(self, until_s: float) -> list[Answer]:
        """As Method."""
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
        """As Method."""
        how = "the server's time to answer: the shortest NOOP less the RTT of the handshake"
        if not self._handshake_s or self._least_s == math.inf:
            return Noise(None, "the server's time to answer is in the RTT")
        return Noise(max(0.0, self._least_s - self._handshake_s), how, is_estimate=True)
