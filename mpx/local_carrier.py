"""Copies from one local file to another: threads that read and write blocks."""

import os
import socket
import threading
from collections.abc import Sequence

from mpx.carrier import Work
from mpx.errors import DestinationError, IntegrityError, Interrupted, SourceError, UsageError
from mpx.local import local_error
from mpx.move import Move
from mpx.path_set import DEFAULT_PATH
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
        for thread in self._threads:
            thread.start()

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
            source = os.open(move.source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise local_error(error, move.source, writing=False) from None
        try:
            target = move.open(move.partial, os.O_RDWR | os.O_CREAT)
            try:
                self._blocks(move, source, target)
            finally:
                move.close()
        except OSError as error:
            raise local_error(error, move.final, writing=True) from None
        finally:
            os.close(source)

    def _blocks(self, move: Move, source: int, target: int) -> None:
        buffer = memoryview(bytearray(BLOCK_BYTES))
        pacer = self._work.pacer
        while taken := move.take(pacer.piece(BLOCK_BYTES)):
            if self._work.failure.cancel.is_set():
                raise Interrupted("stopped")
            start, end = taken
            pacer.wait(end - start)
            try:
                got = os.preadv(source, [buffer[: end - start]], start)
            except OSError as error:
                raise local_error(error, move.source, writing=False) from None
            if got < end - start:
                raise IntegrityError(
                    f"{move.source} became shorter while it was copied; run the command again"
                )
            written = 0
            while written < got:
                written += os.pwrite(target, buffer[written:got], start + written)
            move.passed(start, buffer[:got])
            move.landed(start, end)
            with self._guard:
                self._moved += got
