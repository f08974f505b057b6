"""Uploads in MODE S: the bytes of a file, from its source into the data connection."""

import os
import socket
from collections.abc import Callable

from mpx.endpoints.ftp import telnet_escape
from mpx.endpoints.ftp.session import Session
from mpx.endpoints.ftp.wire import command
from mpx.endpoints.local.source_stream import SourceStream
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece
from mpx.errors import IntegrityError
from mpx.files.local_error import local_error


def clear(session: Session, file: FileTransfer) -> None:
    """Remove what an attempt before has left, as some servers add to that; best effort.

    A file that has its final name is removed only when it is known to be wrong.
    """
    was_stored, file.was_stored = file.was_stored or file.was_begun, True
    is_wrong = file.was_misfit or bool(file.retried_sections)
    if is_wrong or (was_stored and file.partial != file.final):
        telnet_escape.learn(session, file.partial)
        session.call(command("DELE", session.name(file.partial)))


def send_piece(
    context: CarrierContext,
    piece: Piece,
    fd: int,
    connection: socket.socket,
    count: Callable[[int], None],
    buffer: memoryview,
) -> None:
    """Send a piece of the open source `fd`, or all of one that is streamed; `count` is told of bytes sent.

    Raises SourceError, IntegrityError where the source has become shorter, Interrupted, OSError and
    TimeoutError of the connection.
    """
    file, limiter = piece.file, context.limiter

    def send(start: int, end: int) -> None:
        data = buffer[: end - start]
        limiter.wait(end - start)
        connection.sendall(data)
        count(end - start)

    if file.is_streamed:
        source = SourceStream(file, fd, context.failure.cancel.is_set)
        while came := source.read(buffer):
            send(*came)
        return
    position = piece.start
    while position < piece.end:
        want = min(piece.end - position, limiter.piece(len(buffer)))
        try:
            got = os.preadv(fd, [buffer[:want]], position)
        except OSError as error:
            raise local_error(error, file.source, writing=False) from None
        if not got:
            raise IntegrityError(f"{file.source} became shorter while it was copied; run the command again")
        file.sums.passed(position, buffer[:got])
        send(position, position + got)
        position += got
