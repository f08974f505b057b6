"""Two ends of a connection inside TLS on loopback, for tests."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from mpx.net import tls
from mpx.net.self_signed import self_signed
from mpx.net.tls import TlsSocket
from mpx.serve.identity import Identity

PROTOCOL = "mpx-data"


def identity(folder: Path) -> Identity:
    certificate, key = self_signed("test", timedelta(days=1))
    (folder / "pem").write_bytes(certificate)
    (folder / "key").write_bytes(key)
    return Identity(folder / "pem", folder / "key", "")


@contextlib.contextmanager
def plain_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a TCP connection; the first has connected."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        first = socket.create_connection(listener.getsockname())
        second, _ = listener.accept()
    with first, second:
        yield first, second


@contextlib.contextmanager
def tls_pair(folder: Path) -> Iterator[tuple[TlsSocket, TlsSocket]]:
    """The end of a client and that of a server, both blocking, after the handshake."""
    with plain_pair() as (first, second):
        server = tls.wrapped(second, identity(folder).context(), server=True)
        done = threading.Thread(target=_finish, args=(server,))
        done.start()
        client = tls.secured(first, tls.context(server=False, protocols=[PROTOCOL]), "the test", 60)
        done.join()
        with client, server:
            yield client, server


def _finish(server: TlsSocket) -> None:
    tls.finish_handshake(server, 60)
