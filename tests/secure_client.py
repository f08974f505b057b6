"""A raw client of `mpx serve` inside TLS, which sends exactly the bytes that a test means to."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

from raw_client import TIMEOUT_S, RawClient
from sites import with_token

from mpx.endpoints.ftp.extensions.dialing import (
    CONTROL_PROTOCOL,
    DATA_PROTOCOL,
    Direction,
    Ticket,
    parse_ticket,
)
from mpx.endpoints.ftp.token import token_for
from mpx.location import parse_location
from mpx.net import tls
from mpx.net.tls import TlsSocket
from mpx.serve import Server
from mpx.serve.rights import TokenRights
from mpx.serve.session import Limits
from mpx.serve.token_serving import TokenServing

KEPT_S = 5.0  # a connection that is to be closed is closed long before


def inside_tls(port: int, protocol: str) -> TlsSocket:
    plain = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
    found = tls.secured(plain, tls.context(server=False, protocols=[protocol]), "the test", TIMEOUT_S)
    found.settimeout(TIMEOUT_S)
    return found


class SecureClient(RawClient):
    """Logs in with the token of the environment, unless told otherwise."""

    def __init__(self, port: int, *, login: bool = True) -> None:
        super().__init__(port, login=False)
        self.port = port
        if login:
            assert self.do("USER token").code == 331
            assert self.do(f"PASS {token_for(parse_location('mpx://h/')).secret}").code == 230

    def connected(self, port: int) -> socket.socket:
        return inside_tls(port, CONTROL_PROTOCOL)

    def ticket(self, direction: Direction) -> Ticket:
        reply = self.do(f"DATA {direction.value}")
        assert reply.code == 200
        return parse_ticket(reply.text)

    def dial(self, opening: bytes) -> TlsSocket:
        connection = inside_tls(self.port, DATA_PROTOCOL)
        connection.sendall(opening)
        return connection

    def retrieve_over(self, line: str, ticket: Ticket) -> bytes:
        """Do a command that sends data in MODE S; return it."""
        with self.dial(ticket.opening(Direction.DOWN, 0, 0.0)) as data:
            assert self.do(line).code == 150
            got = b""
            while part := data.recv(1 << 20):
                got += part
        assert self.reply().code == 226
        return got


def is_refused(connection: TlsSocket) -> bool:
    """Wait until the server closes a data connection; False if it keeps it, or sends something."""
    connection.settimeout(KEPT_S)
    try:
        return connection.recv(1) == b""
    except TimeoutError:  # it waits for a transfer
        return False
    except OSError:
        return True


@contextlib.contextmanager
def secure_server(
    root: Path, *, writable: bool = True, audit: Path | None = None, limits: Limits | None = None
) -> Iterator[tuple[Server, TokenServing]]:
    secure = TokenServing(audit=audit)
    with Server(root, writable=writable, secure=secure, limits=limits) as server:
        yield server, secure


@contextlib.contextmanager
def token_of(secure: TokenServing, *, writable: bool = True, folder: str = "/") -> Iterator[TokenRights]:
    with with_token(secure, writable=writable, folder=folder) as grant:
        yield grant
