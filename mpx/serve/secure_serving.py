"""Serving inside TLS: the server's key, who may come in, and what becomes of each connection."""

import socket
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

    The key is `certificate` and `key` (files), else one in the state folder of this account, made when it
    is needed first; the tokens are those of `mpx token create`. `audit`: a file that gets a line of JSON for
    each login and each command that concerns a file. Raises UsageError where one of these cannot be used.
    """

    def __init__(
        self, *, certificate: Path | None = None, key: Path | None = None, audit: Path | None = None
    ) -> None:
        self._state = StateFolder()
        try:
            self._identity = (
                given_identity(certificate, key or certificate) if certificate else own_identity(self._state)
            )
            self._context = self._identity.context()
            self.access = Access(TokenStore(self._state), Tickets(), Audit(audit))
            self.access.tokens.grants()
        except BaseException:
            self._state.close()
            raise
        self._handshakes: Handshakes | None = None

    @property
    def key_name(self) -> str:
        """The name of the server's key, as tokens have it."""
        return self._identity.key_name

    @property
    def has_tokens(self) -> bool:
        """Whether anybody could log in."""
        return bool(self.access.tokens.grants())

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
        self._context = self._identity.context()

    def close(self) -> None:
        """End."""
        if self._handshakes:
            self._handshakes.close()
        self._state.close()
