"""Copies from one local file to another: threads that read and write blocks."""

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Iterator, Sequence

from mpx.choices import NONE
from mpx.engine.carrier import CarrierContext
from mpx.engine.checksum import SECTION_BYTES
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.holes import HoleReader, is_sparse, next_data
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.ranges import Range
from mpx.engine.source_change import AGAIN
from mpx.engine.source_stream import SourceStream, is_made_up
from mpx.engine.tuner import Sample
from mpx.errors import DestinationError, IntegrityError, Interrupted, SourceError, UsageError
from mpx.files.local_error import local_error

BLOCK_BYTES = 1024 * 1024


class LocalCarrier:
    """Copies local files, one at a time for each thread. Streams mean threads here."""

    def __init__(self, context: CarrierContext) -> None:
        self._context = context
        self._moved = 0
        self._guard = threading.Lock()  # of `_moved`
        self._threads = [
            threading.Thread(target=self._run, name=f"mpx-local-{i}", daemon=True)
            for i in range(context.options.files or 2)
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

    def spread(self) -> None:
        """See Carrier. There are no sessions."""

    def set_streams(self, path: str, streams: int) -> None:
        """See Carrier. The number of threads is fixed."""

    def renew_streams(self, path: str) -> None:
        """See Carrier. There are no connections."""

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 there is none
        """See Carrier."""
        raise UsageError(f"a local copy has no congestion control; leave {name!r} out")

    def connections(self, path: str) -> Sequence[socket.socket]:  # noqa: ARG002 there is none
        """See Carrier."""
        return ()

    def samples(self) -> dict[str, Sample]:
        """See Carrier."""
        with self._guard:
            moved = self._moved
        left = max(0, self._context.queue.listed_todo_bytes - moved)
        return {DEFAULT_PATH: Sample(streams=len(self._threads), arrived_bytes=moved, bytes_left=left)}

    def silent_s(self, path: str) -> None:
        """See Carrier. There is no path."""

    def stop(self) -> None:
        """See Carrier. Every thread looks at the failure after each block."""

    def join(self) -> None:
        """See Carrier."""
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        with self._context.failure.guard():
            while (file := self._context.queue.take()) is not None:
                try:
                    self._copy(file)
                except (IntegrityError, SourceError, DestinationError) as error:
                    self._context.supervisor.given_up(file, error)
                else:
                    self._context.supervisor.whole(file)

    def _copy(self, file: FileTransfer) -> None:
        with _reading(file):
            source = file.open_source()
        try:
            with _writing(file):
                target = file.open(file.partial, os.O_RDWR | os.O_CREAT)
            try:
                self._copy_open(file, source, target)
            finally:
                with _writing(file):
                    file.close()
        finally:
            os.close(source)

    def _copy_open(self, file: FileTransfer, source: int, target: int) -> None:
        with _reading(file):
            status = os.fstat(source)
            if is_made_up(status):
                file.stream()
            if file.is_streamed:
                self._stream(file, source, target)
            elif not stat.S_ISREG(status.st_mode):
                raise SourceError(f"{file.source} is no longer a regular file; {AGAIN}")
            elif is_sparse(status):
                self._sparse(file, source, target)
            else:
                self._blocks(file, source, target)

    def _stream(self, file: FileTransfer, source: int, target: int) -> None:
        """Copy what is read in order to its end."""
        file.take_all()
        with _writing(file):
            os.ftruncate(target, 0)
        buffer = memoryview(bytearray(BLOCK_BYTES))
        stream, limiter = (
            SourceStream(file, source, self._context.failure.cancel.is_set),
            self._context.limiter,
        )
        while piece := stream.read(buffer[: limiter.piece(BLOCK_BYTES)]):
            start, end = piece
            limiter.wait(end - start)
            self._write(file, target, buffer[: end - start], start)

    def _blocks(self, file: FileTransfer, source: int, target: int) -> None:
        buffer = memoryview(bytearray(BLOCK_BYTES))
        while taken := file.take(self._context.limiter.piece(BLOCK_BYTES)):
            self._block(file, source, target, buffer, taken)

    def _sparse(self, file: FileTransfer, source: int, target: int) -> None:
        """Copy a file with holes, which stay holes."""
        buffer = memoryview(bytearray(BLOCK_BYTES))
        with HoleReader(source) as holes:
            while taken := file.take(SECTION_BYTES):
                self._check_stop()
                start, end = taken
                first, last = next_data(source, start, end)
                blank = first
                if file.sums.algorithm != NONE:  # what is compared has been read
                    blank = holes.zeros_until(start, first, self._context.failure.cancel.is_set)
                if blank > start:
                    file.give_back(blank, end)
                    self._hole(file, target, start, blank)
                    continue
                last = min(
                    last if first == start else first, start + self._context.limiter.piece(BLOCK_BYTES)
                )
                file.give_back(last, end)
                self._block(file, source, target, buffer, (start, last))

    def _block(self, file: FileTransfer, source: int, target: int, buffer: memoryview, piece: Range) -> None:
        self._check_stop()
        start, end = piece
        self._context.limiter.wait(end - start)
        data, got = buffer[: end - start], 0
        while got < len(data):  # some file systems give less than there is
            some = os.preadv(source, [data[got:]], start + got)
            if not some:
                raise IntegrityError(f"{file.source} became shorter while it was copied; {AGAIN}")
            got += some
        self._write(file, target, data, start)

    def _hole(self, file: FileTransfer, target: int, start: int, end: int) -> None:
        """Have zeros at the destination, written only where something else may be."""
        with _writing(file):
            has_bytes = os.fstat(target).st_size  # what lies beyond is read as zeros
            for position in range(start, min(end, has_bytes), BLOCK_BYTES):
                size = min(end, has_bytes, position + BLOCK_BYTES) - position
                _write_all(target, memoryview(bytes(size)), position)
            if end > has_bytes:  # it may be compared from now on
                os.ftruncate(target, end)
        file.hole_bytes = max(file.hole_bytes, end - start)  # it has some, whatever was listed
        file.sums.passed_zeros(start, end)
        self._landed(file, start, end)

    def _write(self, file: FileTransfer, target: int, data: memoryview, start: int) -> None:
        with _writing(file):
            _write_all(target, data, start)
        file.sums.passed(start, data)
        self._landed(file, start, start + len(data))

    def _landed(self, file: FileTransfer, start: int, end: int) -> None:
        file.landed(start, end)
        with self._guard:
            self._moved += end - start

    def _check_stop(self) -> None:
        if self._context.failure.cancel.is_set():
            raise Interrupted("stopped")


@contextlib.contextmanager
def _reading(file: FileTransfer) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise local_error(error, file.source, writing=False) from None


@contextlib.contextmanager
def _writing(file: FileTransfer) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise local_error(error, file.final, writing=True) from None


def _write_all(target: int, data: memoryview, start: int) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(target, data[written:], start + written)
