"""Data connections to another server, which a client has named to send to (third party).

The client could name anybody. What leaves before the other side has proven to have the key that the client
expects is a TCP connection and the beginning of a TLS handshake, in which nothing is chosen by the client. A
connection that does not come about is answered in the same words and after the same time whatever the reason,
so that nobody learns which hosts and ports answer here.
"""

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable

from mpx.endpoints.ftp.extensions.dialing import DATA_PROTOCOL, MOST_TRANSFERS, Direction
from mpx.endpoints.ftp.extensions.third_party import Target, shown
from mpx.endpoints.ftp.openings import Openings
from mpx.errors import AuthenticationError, MpxError
from mpx.net import tcp, tls
from mpx.net.reach import means_the_same_at
from mpx.serve.replies import RefusalReply

DIAL_S = 5.0  # until there is a connection, or the answer that there is none
_TICK_S = 0.1  # whoever waits looks so often whether it still should

_log = logging.getLogger(__name__)


class OtherServer:
    """One server that is to receive, for one data channel. For any thread."""

    missing = f"no data connection to the other server came about within {DIAL_S:g} s"

    def __init__(self, target: Target, client: str) -> None:
        """`client`: its address, which reaches as far as that of the target at most.

        Raises RefusalReply for a target that cannot be used.
        """
        if not all(means_the_same_at(host, client) for host, _ in target.addresses):
            raise RefusalReply(501, "Data goes to no address that reaches less far than your own.")
        self._addresses, self._key = target.addresses, target.key  # replaced once one of them is right
        self._openings = Openings(target.ticket, Direction.UP)
        self._context = tls.context(server=False, protocols=[DATA_PROTOCOL])
        if target.pem:
            try:
                tls.show_key(self._context, target.pem)
            except OSError:  # its words might show what it is about
                raise RefusalReply(501, "The certificate and key of the target cannot be used.") from None
        self._transfers = 0  # that have begun; of the session's thread, which nobody asks meanwhile
        self._first = threading.Lock()  # one connection is tried alone, and others once that is through
        self._is_proven = False
        self._closed = threading.Event()

    @property
    def shown(self) -> str:
        """Where it is, for logs."""
        return shown(self._addresses)

    def begin(self) -> None:
        """Note that a transfer begins: what connects from now on is for it, and not for those before."""
        self._transfers += 1
        if self._transfers > MOST_TRANSFERS:
            raise RefusalReply(425, "Too many transfers: use TARGET again.")

    def wait(self, is_over: Callable[[], bool]) -> socket.socket | None:
        """Open a connection; None, no sooner than after DIAL_S, where none comes about, or once `is_over`."""
        until_s = time.monotonic() + DIAL_S

        def stop() -> bool:
            return is_over() or self._closed.is_set()

        connection = None
        with self._first:
            if not self._is_proven:
                connection = self._open(until_s, stop)
                self._is_proven = connection is not None
        if connection is None and self._is_proven:
            connection = self._open(until_s, stop)
        while connection is None and not stop() and (left_s := until_s - time.monotonic()) > 0:
            self._closed.wait(min(left_s, _TICK_S))
        return connection

    def close(self) -> None:
        """Open no more."""
        self._closed.set()

    def _open(self, until_s: float, stop: Callable[[], bool]) -> socket.socket | None:
        """Try the addresses one after the other, each for its share of the time."""
        for number, address in enumerate(self._addresses):
            left_s = (until_s - time.monotonic()) / (len(self._addresses) - number)
            if left_s <= 0 or stop():
                return None
            try:
                connection = self._connected(address, time.monotonic() + left_s, stop)
                self._addresses = (address,)
                return connection
            except (MpxError, OSError, ValueError) as error:
                _log.info("no data connection to %s: %s", tcp.show(address), error)
        return None

    def _connected(self, address: tcp.Address, until_s: float, stop: Callable[[], bool]) -> ssl.SSLSocket:
        connection = tcp.connect(address, until_s - time.monotonic(), stop=stop)
        left_s = max(0.0, until_s - time.monotonic())
        secured = tls.secured(connection, self._context, tcp.show(address), left_s, stop=stop)

        def check() -> None:
            if tls.peer_key_name(secured) != self._key:
                raise AuthenticationError("it has another key than the client expects; nothing was sent")

        self._openings.send(secured, tcp.show(address), check, first=self._transfers - 1)
        return secured
