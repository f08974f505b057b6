"""Serving inside TLS: the server's key, who may come in, and what becomes of each connection."""

import socket
import ssl
from collections.abc import Callable
from pathlib import Path

from mpx.files.state_folder import StateFolder
from mpx.net.tls import TlsSocket
from mpx.serve.admission import Room
from mpx.serve.audit import Audit
from mpx.serve.handshakes import Handshakes
from mpx.serve.identity import given_identity, own_identity
from mpx.serve.session import Access
from mpx.serve.tickets import Tickets
from mpx.serve.token_store import TokenStore


class SecureServing:
    """What a server inside TLS has beside one in the clear. Close it.

    `context` returns what is shown to who connects; it is asked again by `reload`.
    """

    def __init__(self, context: Callable[[], ssl.SSLContext], access: Access) -> None:
        self._make_context = context
        self._context = context()
        self.access = access
        self._handshakes: Handshakes | None = None

    def start(self, room: Room, begin: Callable[[TlsSocket], None]) -> None:
        """Begin: `begin` gets each control connection."""
        self._handshakes = Handshakes(lambda: self._context, self.access.tickets, room, begin)

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

    def close(self) -> None:
        """End."""
        if self._handshakes:
            self._handshakes.close()


class TokenServing(SecureServing):
    """For who has a token of `mpx token create`.

    The key is `certificate` and `key` (files), else one in the state folder of this account, made when it
    is needed first. `audit`: a file that gets a line of JSON for each login and each command that concerns a
    file. Raises UsageError where one of these cannot be used.
    """

    def __init__(
        self, *, certificate: Path | None = None, key: Path | None = None, audit: Path | None = None
    ) -> None:
        self._state = StateFolder()
        try:
            self._identity = (
                given_identity(certificate, key or certificate) if certificate else own_identity(self._state)
            )
            self._tokens = TokenStore(self._state)
            self._tokens.grants()
            super().__init__(self._identity.context, Access(self._tokens, Tickets(), Audit(audit)))
        except BaseException:
            self._state.close()
            raise

    @property
    def key_name(self) -> str:
        """The name of the server's key, as tokens have it."""
        return self._identity.key_name

    @property
    def tokens(self) -> TokenStore:
        """Who may come in."""
        return self._tokens

    def close(self) -> None:
        """End."""
        super().close()
        self._state.close()
