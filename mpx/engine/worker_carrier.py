"""What carriers of session workers share: starting the workers, and adding up what they have done."""

import socket
import threading
import time
from collections.abc import Sequence

from mpx.engine.carrier import CarrierContext
from mpx.engine.chunk_gate import ChunkGate
from mpx.engine.path_set import interleaved
from mpx.engine.session_worker import SessionWorker
from mpx.engine.stream import StreamTotals, summed
from mpx.engine.tuner import Sample

LOST_S = 1.0  # what has not arrived by then will be sent again


class WorkerCarrier:
    """A carrier of several session workers; a subclass divides the streams over them (`_share`)."""

    def __init__(self, context: CarrierContext) -> None:
        self._context = context
        self._before: dict[str, StreamTotals] = {}
        self._workers: Sequence[SessionWorker] = ()
        self._streams = dict.fromkeys(context.streams.paths.names, 0)
        self._streams[context.streams.paths.names[0]] = 1
        self._order = interleaved(self._streams)  # the path of each stream
        self._sharing = threading.Lock()  # of the streams, the workers that run and what is decided for them
        self._started = 0  # of the workers
        self._is_over = False  # nobody is started any more
        self._chunks = {path: _Chunk(control.gate) for path, control in context.controls.items()}

    def start(self) -> None:
        """See Carrier. One worker begins: the server may admit few sessions, and the committer needs one."""
        with self._sharing:
            self._start_workers(1)

    def spread(self) -> None:
        """See Carrier."""
        with self._sharing:
            if not self._is_over:
                self._share()  # whoever has no part in it opens no session early
                self._start_workers(len(self._workers))

    def _start_workers(self, most: int) -> None:
        for worker in self._workers[self._started : most]:
            worker.peers = self._workers
            try:
                worker.start()
            except RuntimeError:  # no thread is left: go on with those that there are
                if not self._started:
                    raise
                return
            self._started += 1

    def set_streams(self, path: str, streams: int) -> None:
        """See Carrier."""
        with self._sharing:
            self._streams[path] = streams
            self._order = interleaved(self._streams)
            self._share()

    def _share(self) -> None:
        """Divide the streams over the workers that are not gone."""
        raise NotImplementedError

    def connections(self, path: str) -> Sequence[socket.socket]:  # noqa: ARG002 some carriers know none
        """See Carrier."""
        return ()

    def renew_streams(self, path: str) -> None:
        """See Carrier."""
        for worker in self._workers:
            worker.renew(path)

    def stop(self) -> None:
        """See Carrier."""
        for worker in self._workers:
            worker.cut()

    def join(self) -> None:
        """See Carrier."""
        with self._sharing:
            self._is_over = True
        for worker in self._workers[: self._started]:
            worker.join()

    def samples(self) -> dict[str, Sample]:
        """See Carrier. Shares the streams anew, since files have begun and ended, and sessions too."""
        with self._sharing:
            if self._started:
                self._workers[0].is_needed = all(worker.gone for worker in self._workers[: self._started])
            self._share()
        sums = summed(*(worker.totals() for worker in self._workers))
        before, self._before = self._before, sums
        moved_bytes = sum(each.bytes for each in sums.values())
        left_bytes = max(0, self._context.queue.listed_todo_bytes - moved_bytes)
        changing = self._is_changing()
        none, samples = StreamTotals(), {}
        for path in self._context.streams.paths.names:
            now = sums.get(path, none)
            # Who is first takes the next: so each path carries of the rest what it carried so far.
            share = now.bytes / moved_bytes if moved_bytes else 1 / len(self._context.streams.paths.names)
            left = round(left_bytes * share)
            still = self._chunks[path].is_still(now.bytes)
            samples[path] = self._sample(now, before.get(path, none), left, still, changing)
        return samples

    def silent_s(self, path: str) -> float | None:
        """See Carrier."""
        silent = [worker.silent_s(path) for worker in self._workers]
        return min((each for each in silent if each is not None), default=None)

    @staticmethod
    def _sample(
        sums: StreamTotals, before: StreamTotals, left_bytes: int, still: bool, changing: bool
    ) -> Sample:
        busy = sums.busy_s - before.busy_s

        def share(now: float, then: float) -> float | None:
            return min(1.0, max(0.0, (now - then) / busy)) if busy > 0 else None

        return Sample(
            streams=sums.streams,
            arrived_bytes=sums.bytes,
            bytes_left=left_bytes,
            retransmits=sums.retransmits,
            limited_by_receiver=share(sums.limited_by_receiver_s, before.limited_by_receiver_s),
            limited_by_sender=share(sums.limited_by_sender_s, before.limited_by_sender_s),
            busy_s=sums.busy_s,
            queue_s=sums.queue_s,
            window_bps=sums.window_bps,
            queued_bytes=sums.queued_bytes,
            queued_lost=sums.queued_lost,
            untold_bytes=sums.untold_bytes,
            untold_lost=sums.untold_lost,
            still=still,
            changing=changing,
        )

    def _is_changing(self) -> bool:
        """Tell whether streams are under way that are to be replaced by others."""
        return False


class _Chunk:
    """Whether what the gate of a path let through has arrived."""

    def __init__(self, gate: ChunkGate) -> None:
        self._gate = gate
        self._moved = (0, time.monotonic())  # bytes, and since when there are as many
        self._lost_bytes = 0  # that the gate let through, and that did not arrive

    def is_still(self, moved_bytes: int) -> bool:
        """Tell whether all that the gate let through has arrived, or what is missing was lost."""
        now = time.monotonic()
        if moved_bytes != self._moved[0]:
            self._moved = moved_bytes, now
        gate = self._gate
        missing_bytes = max(0, gate.passed_bytes - moved_bytes)
        self._lost_bytes = min(self._lost_bytes, missing_bytes)
        if gate.is_shut and now - self._moved[1] > LOST_S:
            # The gate lets it through once more, so it is not waited for again.
            self._lost_bytes = missing_bytes
        return gate.is_shut and missing_bytes <= self._lost_bytes
