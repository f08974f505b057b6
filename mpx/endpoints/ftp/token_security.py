"""Connections to `mpx serve` for who has a token: TLS 1.3, to a key that is known beforehand."""

import socket
import ssl
from collections.abc import Callable
from functools import partial

from mpx.endpoints.ftp.extensions.dialing import (
    CONTROL_PROTOCOL,
    DATA_PROTOCOL,
    NO_FOLDER,
    TOKEN_USER,
    Direction,
    Ticket,
)
from mpx.endpoints.ftp.extensions.third_party import Target
from mpx.endpoints.ftp.openings import Openings
from mpx.endpoints.ftp.secured import Security
from mpx.endpoints.ftp.token import accepted_key, place, token_for
from mpx.endpoints.ftp.wire import Reply
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, TokenRefused
from mpx.location import Location
from mpx.net import tcp, tls
from mpx.net.dial import Dial

_NOT_LOGGED_IN = 530


class TokenSecurity(Security):
    """What the connections of one session with `mpx serve` have in common: its key, and our token."""

    def __init__(self, location: Location) -> None:
        """Raises AuthenticationError where no token is to be had, UsageError where it cannot be used."""
        self._location = location
        self._token = token_for(location)
        self._known = accepted_key(location, self._token.key) or self._token.key
        self._key = ""  # that the control channel was opened to

    @property
    def login(self) -> tuple[str, str]:
        """See Security."""
        return TOKEN_USER, self._token.secret

    @property
    def tickets(self) -> "TokenSecurity":
        """See Security."""
        return self

    def control(
        self, reach: Callable[[], socket.socket], timeout_s: float, stop: Callable[[], bool]
    ) -> tls.TlsSocket:
        """See Security; closed if the server is not the one that the token is for."""
        made, name = tls.context(server=False, protocols=[CONTROL_PROTOCOL]), ""
        if not self._known:
            made.load_default_certs()
            made.verify_mode, made.check_hostname = ssl.CERT_REQUIRED, True
            name = self._location.host
        connection = reach()
        try:
            secured = tls.secured(connection, made, self._peer, timeout_s, name=name, stop=stop)
        except ConnectionLost as error:
            raise ConnectionLost(f"{error}; check host and port, and that mpx serve runs there") from None
        try:
            self._key = tls.peer_key_name(secured)
            self._check(secured)
        except BaseException:
            secured.close()
            raise
        return secured

    def _check(self, secured: tls.TlsSocket) -> None:
        if secured.selected_alpn_protocol() != CONTROL_PROTOCOL:
            raise AuthenticationError(
                f"{self._peer} speaks TLS but is not mpx serve; nothing was sent; check host and port"
            )
        if self._known and self._key != self._known:
            raise AuthenticationError(
                f"{self._peer} has the key {self._key}, and the token is for {self._known}: "
                "it is another server, or it has a new key; the token was not sent. If its operator "
                f"confirms the new key: mpx token accept {self._peer} {self._key}"
            )

    def dialer(self, ticket: Ticket, direction: Direction) -> "_TokenDialer":
        """Return what begins the data connections of one channel."""
        return _TokenDialer(self._peer, self._key, ticket, direction)

    def address(self) -> None:
        """See Security: the control channel tells."""

    def target(self, ticket: Ticket, peer_host: str) -> Target:
        """See Security."""
        return Target(((peer_host, self._location.port),), self._key, ticket)

    def refused(self, reply: Reply, peer: str) -> MpxError | None:
        """See Security."""
        return token_refused(reply, peer)

    def close(self) -> None:
        """See Security: nothing."""

    @property
    def _peer(self) -> str:
        return place(self._location)


def token_refused(reply: Reply, peer: str) -> MpxError | None:
    """Return what it means that `mpx serve` refuses a token; None: it is not about that."""
    if reply.code != _NOT_LOGGED_IN:
        return None
    if NO_FOLDER in reply.reason:
        return AuthenticationError(
            f"{peer} takes the token, but the folder that it is for does not exist there; ask the operator "
            "to make it"
        )
    return TokenRefused(
        f"{peer} does not accept the token: it was revoked, has expired, or is of another "
        "server; ask the operator for another one (mpx token create)"
    )


class _TokenDialer:
    """Begins data connections of one channel, each with TLS and an opening of its own; from any thread."""

    def __init__(self, peer: str, key: str, ticket: Ticket, direction: Direction) -> None:
        """`key`: that the control channel was opened to."""
        self._peer, self._key = peer, key
        self._openings = Openings(ticket, direction)
        self._context = tls.context(server=False, protocols=[DATA_PROTOCOL])

    def open(
        self, address: tcp.Address, dial: Dial, timeout_s: float, stop: Callable[[], bool]
    ) -> tls.TlsSocket:
        """See Dialer: connects, begins TLS, and says to which channel the connection belongs."""
        secured = tls.secured(dial.connect(address), self._context, self._peer, timeout_s, stop=stop)
        self._openings.send(secured, self._peer, partial(self._check, secured))
        return secured

    def _check(self, secured: tls.TlsSocket) -> None:
        if tls.peer_key_name(secured) != self._key:
            raise AuthenticationError(
                f"another server answers for {self._peer} than the one that let us in; no data was sent"
            )
