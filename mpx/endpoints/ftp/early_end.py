"""Downloads whose final reply (2xx) comes without the preliminary one (1xx) that RFC 959 wants before it.

Some servers reply 2xx at once to every RETR and then send the data. Others do so only for an empty file, and
never serve the data connection, or close its port. The data that arrived are checked as in any download.
"""

import contextlib
import socket

from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply
from mpx.errors import ConnectionLost, MpxError, TransferTimeout

REFUSAL_S = 1.0  # a server that closes its port to refuse a transfer says so at about the same time
FIRST_BYTE_S = 2.0  # for what a server has sent once it says so


def early_reply(session: ClientSession, error: MpxError) -> Reply:
    """Return the final reply of a server that closed its port before we connected; else raise `error`."""
    reply = None
    with contextlib.suppress(MpxError):
        reply = session.poll_reply(REFUSAL_S)
    if reply is None or reply.is_preliminary:
        raise error from None
    return reply


def await_first(connection: socket.socket, peer: str, name: str, *, is_sized: bool) -> None:
    """Wait for the first byte of a data connection, or for its end; if neither comes, end it for reading.

    `peer` sends the file `name`. If its size is unknown (not `is_sized`) the missing data do not mean that
    it is empty: raises TransferTimeout, or ConnectionLost if the connection was reset, which the kernel
    reports only to the first read.
    """
    patience_s = connection.gettimeout()
    connection.settimeout(FIRST_BYTE_S if is_sized else patience_s)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        if not is_sized:
            raise TransferTimeout(f"{peer} reports {name} as sent, but no data arrived") from None
        with contextlib.suppress(OSError):  # it was reset just now
            connection.shutdown(socket.SHUT_RD)
    except OSError as error:
        if not is_sized:
            raise ConnectionLost(
                f"{peer} reports {name} as sent, but reset the data connection before any data arrived"
            ) from error
    connection.settimeout(patience_s)


def brings_nothing() -> socket.socket:
    """Return a connection that has ended."""
    ours, theirs = socket.socketpair()
    theirs.close()
    return ours
