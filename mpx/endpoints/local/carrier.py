"""Copies from one local file to another: threads that read and write blocks."""

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Iterator, Sequence

from mpx.choices import NONE
from mpx.endpoints.local.source_stream import SourceStream, is_made_up
from mpx.engine.carrier import CarrierContext
from mpx.engine.checksum import SECTION_BYTES
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.holes import HoleReader, is_sparse, next_data
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.ranges import Range
from mpx.engine.source_change import AGAIN
from mpx.engine.tuner import Sample
from mpx.errors import DestinationError, IntegrityError, Interrupted, SourceError, UsageError
from mpx.files.local_error import local_error

BLOCK_BYTES = 1024 * 1024


class LocalCarrier:
    """Copies local files, one at a time for each thread. Streams mean threads here."""

    tunable = False

    def __init__(self, work: CarrierContext) -> None:
        self._work = work
        self._moved = 0
        self._guard = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, name=f"mpx-local-{i}", daemon=True)
            for i in range(work.options.files or 2)
        ]

    def start(self) -> None:
        """See Carrier."""
        begun: list[threading.Thread] = []
        try:
            for thread in self._threads:
                thread.start()
                begun.append(thread)
        except RuntimeError:  # no thread is left: go on with those that there are
            if not begun:
                raise
        self._threads = begun

    def set_streams(self, path: str, streams: int) -> None:
        """See Carrier. The number of threads is fixed."""

    def renew_streams(self) -> None:
        """See Carrier. There are no connections."""

    def set_congestion(self, name: str) -> None:
        """See Carrier."""
        raise UsageError(f"a local copy has no congestion control; leave {name!r} out")

    def connections(self) -> Sequence[socket.socket]:
        """See Carrier."""
        return ()

    def samples(self) -> dict[str, Sample]:
        """See Carrier."""
        left = max(0, self._work.pool.listed_todo_bytes - self._moved)
        return {DEFAULT_PATH: Sample(streams=len(self._threads), arrived_bytes=self._moved, bytes_left=left)}

    def silent_s(self, path: str) -> None:
        """See Carrier. There is no path."""

    def stop(self) -> None:
        """See Carrier. Every thread looks at the failure after each block."""

    def join(self) -> None:
        """See Carrier."""
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        with self._work.failure.guard():
            while (move := self._work.pool.take()) is not None:
                try:
                    self._copy(move)
                except (IntegrityError, SourceError, DestinationError) as error:
                    self._work.given_up(move, error)
                else:
                    self._work.whole(move)

    def _copy(self, move: FileTransfer) -> None:
        with _reading(move):
            source = move.open_source()
        try:
            with _writing(move):
                target = move.open(move.partial, os.O_RDWR | os.O_CREAT)
            try:
                self._move(move, source, target)
            finally:
                with _writing(move):
                    move.close()
        finally:
            os.close(source)

    def _move(self, move: FileTransfer, source: int, target: int) -> None:
        with _reading(move):
            status = os.fstat(source)
            if is_made_up(status):
                move.stream()
            if move.is_streamed:
                self._stream(move, source, target)
            elif not stat.S_ISREG(status.st_mode):
                raise SourceError(f"{move.source} was a file and is none any more; {AGAIN}")
            elif is_sparse(status):
                self._sparse(move, source, target)
            else:
                self._blocks(move, source, target)

    def _stream(self, move: FileTransfer, source: int, target: int) -> None:
        """Copy what is read in order to its end."""
        move.take_all()
        with _writing(move):
            os.ftruncate(target, 0)
        buffer = memoryview(bytearray(BLOCK_BYTES))
        stream = SourceStream(move, source, self._work.failure.cancel.is_set)
        while piece := stream.read(buffer):
            start, end = piece
            self._work.pacer.wait(end - start)
            self._write(move, target, buffer[: end - start], start)

    def _blocks(self, move: FileTransfer, source: int, target: int) -> None:
        buffer = memoryview(bytearray(BLOCK_BYTES))
        while taken := move.take(self._work.pacer.piece(BLOCK_BYTES)):
            self._block(move, source, target, buffer, taken)

    def _sparse(self, move: FileTransfer, source: int, target: int) -> None:
        """Copy a file with holes, which stay holes."""
        buffer = memoryview(bytearray(BLOCK_BYTES))
        with HoleReader(source) as holes:
            while taken := move.take(SECTION_BYTES):
                self._check_stop()
                start, end = taken
                first, last = next_data(source, start, end)
                blank = first
                if move.sums.algorithm != NONE:  # what is compared has been read
                    blank = holes.zeros_until(start, first, self._work.failure.cancel.is_set)
                if blank > start:
                    move.give_back(blank, end)
                    self._hole(move, target, start, blank)
                    continue
                last = min(last if first == start else first, start + self._work.pacer.piece(BLOCK_BYTES))
                move.give_back(last, end)
                self._block(move, source, target, buffer, (start, last))

    def _block(self, move: FileTransfer, source: int, target: int, buffer: memoryview, piece: Range) -> None:
        self._check_stop()
        start, end = piece
        self._work.pacer.wait(end - start)
        data, got = buffer[: end - start], 0
        while got < len(data):  # some file systems give less than there is
            some = os.preadv(source, [data[got:]], start + got)
            if not some:
                raise IntegrityError(f"{move.source} became shorter while it was copied; {AGAIN}")
            got += some
        self._write(move, target, data, start)

    def _hole(self, move: FileTransfer, target: int, start: int, end: int) -> None:
        """Have zeros at the destination, written only where something else may be."""
        with _writing(move):
            has_bytes = os.fstat(target).st_size  # what lies beyond is read as zeros
            for position in range(start, min(end, has_bytes), BLOCK_BYTES):
                size = min(end, has_bytes, position + BLOCK_BYTES) - position
                _write_all(target, memoryview(bytes(size)), position)
            if end > has_bytes:  # it may be compared from now on
                os.ftruncate(target, end)
        move.hole_bytes = max(move.hole_bytes, end - start)  # it has some, whatever was listed
        move.sums.passed_zeros(start, end)
        self._landed(move, start, end)

    def _write(self, move: FileTransfer, target: int, data: memoryview, start: int) -> None:
        with _writing(move):
            _write_all(target, data, start)
        move.sums.passed(start, data)
        self._landed(move, start, start + len(data))

    def _landed(self, move: FileTransfer, start: int, end: int) -> None:
        move.landed(start, end)
        with self._guard:
            self._moved += end - start

    def _check_stop(self) -> None:
        if self._work.failure.cancel.is_set():
            raise Interrupted("stopped")


@contextlib.contextmanager
def _reading(move: FileTransfer) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise local_error(error, move.source, writing=False) from None


@contextlib.contextmanager
def _writing(move: FileTransfer) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise local_error(error, move.final, writing=True) from None


def _write_all(target: int, data: memoryview, start: int) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(target, data[written:], start + written)
