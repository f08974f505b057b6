"""Which servers take requests ahead of the answers to those before (RFC 9112, section 9.3.2)."""

import threading

from mpx.endpoints.web.connection import HttpConnection
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import Origin
from mpx.errors import ConnectionLost, TransferTimeout

FEW_ANSWERS = 10  # a server that ends a connection before so many takes no requests ahead
TRIAL_S = 2.0  # an answer that was asked for ahead comes so soon, or the server has never seen the question


class Pipelining:
    """For any thread. A server is taken to do it until something shows that it does not.

    As some hang then, the first answers that were asked for ahead are not waited for long (`patience_s`).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refusing: set[Origin] = set()
        self._proven: set[Origin] = set()

    def is_possible(self, origin: Origin) -> bool:
        """Tell whether requests may be sent ahead."""
        return origin not in self._refusing

    def patience_s(self, origin: Origin) -> float | None:
        """Return for how long an answer is waited for that was asked for ahead; None: as for any other."""
        return None if origin in self._proven else TRIAL_S

    def reply(self, http: HttpConnection, method: str) -> HttpReply:
        """Read the head of an answer that was asked for ahead; ConnectionLost where the server hangs."""
        patience_s = self.patience_s(http.origin)
        if patience_s is None:
            return http.reply(method)
        http.be_patient(patience_s)
        try:
            reply = http.reply(method)
        except TransferTimeout as error:
            self.refuse(http.origin)
            raise ConnectionLost(f"{error}, as it takes no requests ahead") from None
        finally:
            http.be_patient(None)
        self.prove(http.origin)
        return reply

    def prove(self, origin: Origin) -> None:
        """Note that an answer came that was asked for ahead."""
        with self._lock:
            self._proven.add(origin)

    def ended(self, origin: Origin, answered: int) -> None:
        """Note that a connection ended after so many answers, with requests that were not answered."""
        if answered < FEW_ANSWERS:
            self.refuse(origin)

    def refuse(self, origin: Origin) -> None:
        """Send this server nothing ahead from now on."""
        with self._lock:
            self._refusing.add(origin)
