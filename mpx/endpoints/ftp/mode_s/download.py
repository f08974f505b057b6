"""Downloads in MODE S, one session: no part of a file is believed before the session has proven itself.

A server may acknowledge REST and ignore it, honour it in one order of commands only, or once. What comes
has the right size all the same. So a session first reads the end of a file, with the very commands that
parts take: the data have to end by themselves after exactly as many bytes as the file has from there on.
It does so once more after its first part that ends within a file, for which the connection is closed from
our side; that part is cut short where it takes long. A file that is read from its first byte to its end
proves itself.
"""

import math
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from mpx.engine.carrier import CarrierContext
from mpx.engine.checksum import SECTION_BYTES
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.engine.source_change import end_proof, why_elsewhere, why_too_short
from mpx.engine.stream import BUFFER_BYTES
from mpx.errors import ConnectionLost, IntegrityError, OffsetsUnproven
from mpx.files.local_error import local_error
from mpx.units import counted

MOST_FRUITLESS = 2
UNCONFIRMED_S = 1.0  # of a part that does not count yet


@dataclass(slots=True)
class Incoming:
    """What one RETR brought: the number of bytes, and whether the server ended them."""

    bytes: int = 0
    is_ended: bool = False
    is_left_open: bool = False  # as many came as there should be, and then neither more nor an end


Receive = Callable[[socket.socket, Callable[[int], None]], Incoming]
Retrieve = Callable[[FileTransfer, int, int | None, Receive], Incoming]
Describe = Callable[[str], FileInfo | None]


class StreamDownload:
    """Brings pieces over one session at a time.

    `retrieve(file, offset, expected_bytes, receive)` runs one RETR from an offset and has what comes
    received by `receive(connection, count)`. `describe`: see Supervisor.
    """

    def __init__(
        self, context: CarrierContext, scheduler: RangeScheduler, retrieve: Retrieve, describe: Describe
    ) -> None:
        self._context = context
        self._scheduler = scheduler
        self._retrieve = retrieve
        self._describe = describe
        self.new_bytes = 0  # that have arrived for the first time
        self._serial = 0  # of the session
        self._fruitless = 0  # sessions in a row that were lost while they proved themselves
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self.begin_session()

    def begin_session(self) -> None:
        """Believe nothing of what another session has proven: it may have been another server.

        To be called when a session has gone, and whatever it was reading with it.
        """
        self._serial += 1
        self._ends_read = 0
        self._proven_to = 0  # the largest offset from which a file ended where it should
        self._is_confirmed = False  # once more, after a part that ended within its file

    def bring(self, piece: Piece, fd: int) -> None:
        """Bring a piece, and find out where the file ends if it reaches its end.

        Raises OffsetsUnproven, IntegrityError where the file has changed, and what `retrieve` raises.
        """
        file, start = piece.file, piece.start
        if start == 0 and (file.is_streamed or piece.end >= file.size_bytes):
            self._bring_whole(file, fd)
            return
        if start and not self._is_confirmed:
            start = self._bring_unconfirmed(file, start, piece.end, fd)
        if start < piece.end:
            if piece.end >= file.size_bytes:
                self._bring_end(file, start, fd)
            else:
                self._bring_part(file, start, piece.end, fd)

    def _bring_whole(self, file: FileTransfer, fd: int) -> None:
        size_bytes = None if file.is_streamed else file.size_bytes
        came = self._read(file, 0, None, fd, expected=size_bytes, lands=True).bytes
        if came < (file.listed_bytes or 0):
            why = why_too_short(self._describe(file.source), file, came)
            if why:
                raise why
        if came != size_bytes:
            self._scheduler.ended(file, came)
            try:
                os.ftruncate(fd, came)
            except OSError as error:
                raise local_error(error, file.final, writing=True) from None
        self.new_bytes += file.landed(0, came)

    def _bring_unconfirmed(self, file: FileTransfer, start: int, end: int, fd: int) -> int:
        """Bring a part, or as much of it as comes within UNCONFIRMED_S; return up to where.

        Until the session has proven itself once more nothing of it counts, so an interruption would lose it.
        """
        serial, want, is_end = self._serial, end - start, end >= file.size_bytes
        if start > self._proven_to and not is_end:
            self._prove(file)
            self._check_same(serial)
        came = self._read(
            file,
            start,
            want + is_end,  # nothing may come behind the end
            fd,
            expected=want if is_end else None,
            lands=False,
            within_s=UNCONFIRMED_S,
        )
        if is_end and (came.is_ended or came.bytes > want):
            self._end_came(file, start, came, serial)
            return end
        if came.is_ended:
            raise self._contradicted(file, start, came)
        self._check_same(serial)
        self._prove(file)
        self._check_same(serial)
        self._is_confirmed, self._fruitless = True, 0
        self.new_bytes += file.landed(start, start + came.bytes)
        return start + came.bytes

    def _bring_end(self, file: FileTransfer, start: int, fd: int) -> None:
        rest, serial = file.size_bytes - start, self._serial
        came = self._read(file, start, rest + 1, fd, expected=rest, lands=False)
        self._end_came(file, start, came, serial)

    def _end_came(self, file: FileTransfer, start: int, came: Incoming, serial: int) -> None:
        """Count the end of a file, which shows by its length that it is what was asked for."""
        self._check(file, start, came, file.size_bytes - start, serial)
        if self._ends_read < 2:  # the offset may be just what the size is wrong by
            self._prove(file, beside=start)
        self._check_same(serial)
        self.new_bytes += file.landed(start, file.size_bytes)

    def _bring_part(self, file: FileTransfer, start: int, end: int, fd: int) -> None:
        came = self._read(file, start, end - start, fd, expected=None, lands=True)
        if came.bytes < end - start:
            raise self._contradicted(file, start, came)

    def _prove(self, file: FileTransfer, beside: int = 0) -> None:
        """Read the last byte of a file, after which it has to end; two if that is what it is `beside`."""
        start = end_proof(beside, file.size_bytes)
        rest, serial = file.size_bytes - start, self._serial
        came = self._read(file, start, rest + 1, None, expected=rest, lands=False)
        self._check(file, start, came, rest, serial)

    def _check(self, file: FileTransfer, start: int, came: Incoming, rest: int, serial: int) -> None:
        """Believe the session with that serial number to begin files where it is asked to."""
        if came.bytes != rest or not came.is_ended:
            raise self._contradicted(file, start, came)
        if serial != self._serial:
            return  # it was lost as soon as it had ended the data
        self._proven_to = max(self._proven_to, start)
        self._ends_read += 1

    def _check_same(self, serial: int) -> None:
        """Raise ConnectionLost if the session with that serial number is not the present one.

        OffsetsUnproven where that happens again and again: some servers end a session with its transfer.
        """
        if serial == self._serial:
            return
        self._fruitless += 1
        lost = "session lost before its support for offsets (REST) was confirmed"
        raise OffsetsUnproven(lost) if self._fruitless >= MOST_FRUITLESS else ConnectionLost(lost)

    def _contradicted(self, file: FileTransfer, start: int, came: Incoming) -> IntegrityError:
        """Return what it means that other than what should be came from an offset on."""
        more = "" if came.is_ended else "or more "
        what = f"{counted(came.bytes, 'byte')} {more}came from {start} on, of {file.size_bytes} in all"
        return why_elsewhere(self._describe(file.source), file, what)

    # --- the bytes -----------------------------------------------------------------------------------

    def _read(
        self,
        file: FileTransfer,
        start: int,
        most: int | None,
        fd: int | None,
        *,
        expected: int | None,
        lands: bool,
        within_s: float = math.inf,
    ) -> Incoming:
        """Read from an offset to the end, `most` bytes, or so long; write them unless there is no `fd`.

        They count as arrived at once if they land. `expected`: after how many the server should end.
        """
        limiter = self._context.limiter

        def receive(connection: socket.socket, count: Callable[[int], None]) -> Incoming:
            came, position, until_s = Incoming(), start, time.monotonic() + within_s
            while (most is None or came.bytes < most) and not (came.bytes and time.monotonic() > until_s):
                edge = (position // SECTION_BYTES + 1) * SECTION_BYTES
                want = min(edge - position, limiter.piece(BUFFER_BYTES))
                if most is not None:
                    want = min(want, most - came.bytes)
                try:
                    got = connection.recv_into(self._buffer, want)
                except TimeoutError:
                    if came.bytes != expected:
                        raise
                    came.is_left_open = True
                    break
                if not got:
                    came.is_ended = True
                    break
                if fd is not None:
                    self._write(file, position, min(got, self._room(file, position, most)), fd, lands=lands)
                came.bytes += got
                position += got
                count(got)
                limiter.wait(got)  # not before, as less may come than is wanted
            return came

        return self._retrieve(file, start, expected, receive)

    @staticmethod
    def _room(file: FileTransfer, position: int, most: int | None) -> int:
        """Return how many bytes may be written from here on: none beyond the end, if that is believed."""
        return BUFFER_BYTES if most is None else max(0, file.size_bytes - position)

    def _write(self, file: FileTransfer, position: int, size_bytes: int, fd: int, *, lands: bool) -> None:
        data = self._buffer[:size_bytes]
        written = 0
        try:
            while written < size_bytes:
                written += os.pwrite(fd, data[written:], position + written)
        except OSError as error:
            raise local_error(error, file.final, writing=True) from None
        end = position + size_bytes if file.is_streamed else min(position + size_bytes, file.size_bytes)
        if lands and position < end:
            file.sums.passed(position, data[: end - position])
            self.new_bytes += file.landed(position, end)
