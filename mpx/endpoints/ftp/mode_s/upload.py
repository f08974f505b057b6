"""Uploads in MODE S: the bytes of a file, from its source into the data connection."""

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable

from mpx.endpoints.ftp import telnet_escape
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import command
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece
from mpx.engine.source_stream import SourceStream
from mpx.errors import IntegrityError
from mpx.files.local_error import local_error
from mpx.net.tcp_info import unacknowledged_bytes

TAKEN_SOON_BYTES = 256 * 1024  # that may be under way still when all is sent
TICK_MS = 20


def clear(session: ClientSession, file: FileTransfer) -> None:
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
    """Send a piece of the open source `fd`, or all of one that is streamed; `count` is given the bytes sent.

    Raises SourceError, IntegrityError where the source has become shorter, Interrupted, OSError and
    TimeoutError of the connection.
    """
    file, limiter = piece.file, context.limiter

    def send(start: int, end: int) -> None:
        data = buffer[: end - start]
        limiter.wait(end - start)
        _send_all(connection, data)
        count(end - start)

    if file.is_streamed:
        source = SourceStream(file, fd, context.failure.cancel.is_set)
        while came := source.read(buffer[: limiter.piece(len(buffer))]):
            send(*came)
        await_taken(connection, context.failure.cancel.is_set)
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
    await_taken(connection, context.failure.cancel.is_set)


def _send_all(connection: socket.socket, data: memoryview) -> None:
    """Send all of it; raises TimeoutError where the other side takes nothing for as long as the time-out.

    The kernel takes no more from us until a good part of what it holds is gone: over a slow way that may take
    longer.
    """
    while data:
        held_bytes = unacknowledged_bytes(connection)
        try:
            data = data[connection.send(data) :]
        except TimeoutError:
            if unacknowledged_bytes(connection) >= held_bytes:
                raise


def await_taken(connection: socket.socket, stop: Callable[[], bool]) -> None:
    """End the data, and wait until the other side has nearly all: the answer has its time-out from then on.

    Raises TimeoutError where it takes nothing for as long as that, OSError where it has reset the connection.
    """
    patience_s = connection.gettimeout() or 0.0
    with contextlib.suppress(OSError):  # it has ended; the answer tells why
        connection.shutdown(socket.SHUT_WR)
    ended = select.poll()
    ended.register(connection, 0)
    held_bytes, since_s = unacknowledged_bytes(connection), time.monotonic()
    while held_bytes > TAKEN_SOON_BYTES and not stop():
        if ended.poll(TICK_MS):
            if error := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(error, os.strerror(error))
            return
        before_bytes, held_bytes = held_bytes, unacknowledged_bytes(connection)
        if held_bytes < before_bytes:
            since_s = time.monotonic()
        elif time.monotonic() - since_s > patience_s:
            raise TimeoutError
