"""Copies from one local file to another: threads that read and write blocks."""

import os
import socket
import stat
import threading
from collections.abc import Sequence

from mpx.carrier import Work
from mpx.checksum import SECTION_BYTES
from mpx.errors import DestinationError, IntegrityError, Interrupted, SourceError, UsageError
from mpx.holes import is_sparse, next_data
from mpx.local import local_error
from mpx.move import Move
from mpx.path_set import DEFAULT_PATH
from mpx.ranges import Range
from mpx.source_change import AGAIN
from mpx.source_stream import SourceStream, is_made_up
from mpx.tuner import Sample

BLOCK_BYTES = 1024 * 1024


class LocalCarrier:
    """Copies local files, one at a time for each thread. Streams mean threads here."""

    tunable = False

    def __init__(self, work: Work) -> None:
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

    def _copy(self, move: Move) -> None:
        try:
            source = move.open_source()
        except OSError as error:
            raise local_error(error, move.source, writing=False) from None
        try:
            target = move.open(move.partial, os.O_RDWR | os.O_CREAT)
            try:
                status = os.fstat(source)
                if is_made_up(status):
                    move.stream()
                if move.is_streamed:
                    self._stream(move, source, target)
                else:
                    self._blocks(move, source, target, status)
            finally:
                move.close()
        except OSError as error:
            raise local_error(error, move.final, writing=True) from None
        finally:
            os.close(source)

    def _stream(self, move: Move, source: int, target: int) -> None:
        """Copy what is read in order to its end."""
        move.take_all()
        os.ftruncate(target, 0)
        buffer = memoryview(bytearray(BLOCK_BYTES))
        stream = SourceStream(move, source, self._work.failure.cancel.is_set)
        while piece := stream.read(buffer):
            start, end = piece
            self._work.pacer.wait(end - start)
            self._write(move, target, buffer[: end - start], start)

    def _blocks(self, move: Move, source: int, target: int, status: os.stat_result) -> None:
        """Copy what is to be moved of a file of known size; holes stay holes."""
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{move.source} was a file and is none any more; {AGAIN}")
        if is_sparse(status):
            self._sparse(move, source, target)
            return
        buffer = memoryview(bytearray(BLOCK_BYTES))
        while taken := move.take(self._work.pacer.piece(BLOCK_BYTES)):
            self._block(move, source, target, buffer, taken)

    def _sparse(self, move: Move, source: int, target: int) -> None:
        buffer = memoryview(bytearray(BLOCK_BYTES))
        blank_from = os.fstat(target).st_size  # what lies beyond is read as zeros
        while taken := move.take(SECTION_BYTES):
            start, end = taken
            first, last = next_data(source, start, end)
            if first > start:
                move.give_back(first, end)
                self._hole(move, target, start, first, blank_from)
            else:
                last = min(last, start + self._work.pacer.piece(BLOCK_BYTES))
                move.give_back(last, end)
                self._block(move, source, target, buffer, (start, last))
        if os.fstat(target).st_size < move.size_bytes:
            os.ftruncate(target, move.size_bytes)

    def _block(self, move: Move, source: int, target: int, buffer: memoryview, piece: Range) -> None:
        self._check_stop()
        start, end = piece
        self._work.pacer.wait(end - start)
        try:
            got = os.preadv(source, [buffer[: end - start]], start)
        except OSError as error:
            raise local_error(error, move.source, writing=False) from None
        if got < end - start:
            raise IntegrityError(f"{move.source} became shorter while it was copied; run the command again")
        self._write(move, target, buffer[:got], start)

    def _hole(self, move: Move, target: int, start: int, end: int, blank_from: int) -> None:
        """Have zeros at the destination, written only where something else may be."""
        self._check_stop()
        for position in range(start, min(end, blank_from), BLOCK_BYTES):
            size = min(end, blank_from, position + BLOCK_BYTES) - position
            _write_all(target, memoryview(bytes(size)), position)
        move.sums.passed_zeros(start, end)
        self._landed(move, start, end)

    def _write(self, move: Move, target: int, data: memoryview, start: int) -> None:
        _write_all(target, data, start)
        move.sums.passed(start, data)
        self._landed(move, start, start + len(data))

    def _landed(self, move: Move, start: int, end: int) -> None:
        move.landed(start, end)
        with self._guard:
            self._moved += end - start

    def _check_stop(self) -> None:
        if self._work.failure.cancel.is_set():
            raise Interrupted("stopped")


def _write_all(target: int, data: memoryview, start: int) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(target, data[written:], start + written)
