"""Transfers of which a server says how they have ended before it said that they begin (1xx).

Some servers answer 2xx to every RETR, and their data come all the same; others only for an empty file, and
then never serve the data connection, or close its port. What has come is judged as ever.
"""

import contextlib
import socket

from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply
from mpx.errors import ConnectionLost, MpxError, TransferTimeout

REFUSAL_S = 1.0  # a server that closes its port to refuse a transfer says so at about the same time
FIRST_BYTE_S = 2.0  # for what a server has sent once it says so


def early_reply(session: ClientSession, error: MpxError) -> Reply:
    """Return what a server says that closed its port before we came; raises `error` if it says nothing."""
    reply = None
    with contextlib.suppress(MpxError):
        reply = session.poll_reply(REFUSAL_S)
    if reply is None or reply.is_preliminary:
        raise error from None
    return reply


def await_first(connection: socket.socket, *, is_sized: bool) -> None:
    """Wait until something comes over a connection, or its end; end it for reading where nothing does.

    For a file of unknown size raises TransferTimeout, and ConnectionLost where the connection was reset: the
    file is not empty because nothing comes, and the kernel reports a reset only to whoever reads first.
    """
    patience_s = connection.gettimeout()
    connection.settimeout(FIRST_BYTE_S if is_sized else patience_s)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        if not is_sized:
            raise TransferTimeout("the server says that it has sent a file, of which nothing came") from None
        with contextlib.suppress(OSError):  # it was reset just now
            connection.shutdown(socket.SHUT_RD)
    except OSError as error:
        if not is_sized:
            raise ConnectionLost(
                "the server says that it has sent a file, and has reset the connection for it"
            ) from error
    connection.settimeout(patience_s)


def brings_nothing() -> socket.socket:
    """Return a connection that has ended."""
    ours, theirs = socket.socketpair()
    theirs.close()
    return ours
