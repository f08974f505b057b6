"""Serving inside TLS: what is shown to who connects, and what becomes of each connection."""

import socket
import ssl
from collections.abc import Callable

from mpx.net.tls import TlsSocket
from mpx.serve.handshakes import Handshakes
from mpx.serve.session import Access


class SecureServing:
    """What a server inside TLS has beside one in the clear. Close it.

    `context` returns what is shown to who connects; it is asked again by `reload`.
    """

    def __init__(self, context: Callable[[], ssl.SSLContext], access: Access) -> None:
        self._make_context = context
        self._context = context()
        self.access = access
        self._handshakes: Handshakes | None = None

    def start(self, begin: Callable[[TlsSocket], None]) -> None:
        """Begin: `begin` gets each control connection."""
        self._handshakes = Handshakes(lambda: self._context, self.access.tickets, begin)

    def take(self, sock: socket.socket, host: str) -> None:
        """Take over a connection that was accepted. Raises OSError if it has gone already."""
        assert self._handshakes
        self._handshakes.add(sock, host)

    def reload(self) -> None:
        """Read the certificate anew, for connections from now on, and open the audit log anew.

        Raises UsageError; then what there was goes on.
        """
        self.access.audit.reopen()
        self._context = self._make_context()

    def stop(self) -> None:
        """Let nobody in any more."""
        if self._handshakes:
            self._handshakes.close()
            self._handshakes = None

    def close(self) -> None:
        """End."""
        self.stop()
