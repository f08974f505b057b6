"""A carrier that moves files between two dictionaries of this process, one block after the other."""

import itertools
import socket
import threading
from collections.abc import Sequence

from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.tuner import Sample
from mpx.errors import Interrupted, SourceError, UsageError

BLOCK_BYTES = 1000


class MemoryCarrier:
    """See Carrier: one thread, however many streams it is told to use.

    It stands still while `runs` is cleared, and renewed streams begin where the old ones ended.
    """

    def __init__(
        self, context: CarrierContext, sources: dict[str, bytes], paths: Sequence[str] = (DEFAULT_PATH,)
    ) -> None:
        self.streams = dict.fromkeys(paths, 0)
        self.asked: list[tuple[str, int]] = []  # for streams, in this order
        self.renewed_at: list[int] = []  # how much had arrived when streams were renewed
        self.congestion: list[tuple[str, str]] = []  # paths, and what they were switched to
        self.refuses: set[str] = set()  # congestion controls that may not be used
        self.targets: dict[str, bytearray] = {}
        self.arrived = dict.fromkeys(paths, 0)
        self.runs = threading.Event()
        self.runs.set()
        self.is_stopped = False
        self._context, self._sources = context, sources
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def spread(self) -> None:
        return

    def set_streams(self, path: str, streams: int) -> None:
        self.streams[path] = streams
        self.asked.append((path, streams))

    def renew_streams(self, path: str) -> None:
        self.renewed_at.append(self.arrived[path])

    def set_congestion(self, path: str, name: str) -> None:
        if name in self.refuses:
            raise UsageError(f"{name} is not permitted")
        self.congestion.append((path, name))

    def connections(self, path: str) -> Sequence[socket.socket]:
        return ()

    def samples(self) -> dict[str, Sample]:
        left = self._context.queue.listed_todo_bytes - sum(self.arrived.values())
        return {
            path: Sample(streams, self.arrived[path], left // len(self.streams), still=self._is_still(path))
            for path, streams in self.streams.items()
        }

    def _is_still(self, path: str) -> bool:
        gate = self._context.controls[path].gate
        return gate.is_shut and gate.passed_bytes == self.arrived[path]

    def silent_s(self, path: str) -> None: ...

    def stop(self) -> None:
        self.is_stopped = True

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        context = self._context
        with context.failure.guard():
            while (file := context.queue.take()) is not None:
                if file.source not in self._sources:
                    context.supervisor.given_up(file, SourceError(f"{file.source} does not exist"))
                    continue
                self._move(file)
                assert file.claim_whole()
                context.supervisor.whole(file)

    def _move(self, file: FileTransfer) -> None:
        content = self._sources[file.source]
        target = self.targets.setdefault(file.final, bytearray(len(content)))
        if file.is_streamed:  # of unknown size, or said to be empty
            target[:] = content
            self.arrived[DEFAULT_PATH] += file.landed(0, len(content))
            file.ended(len(content))
        paths = itertools.cycle(self.streams)
        while file.todo_bytes:
            while not self.runs.wait(0.01):
                self._check_stop()
            self._check_stop()
            path = next(paths)
            if allowed := self._context.controls[path].gate.take(min(BLOCK_BYTES, file.todo_bytes)):
                start, end = file.take(allowed) or (0, 0)
                target[start:end] = content[start:end]
                self.arrived[path] += file.landed(start, end)

    def _check_stop(self) -> None:
        if self._context.failure.cancel.is_set():
            raise Interrupted
