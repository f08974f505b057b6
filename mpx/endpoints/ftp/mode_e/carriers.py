"""The carriers of servers: how many streams each session of a copy gets.

Each imports what moves its bytes once there is something to move, as a copy has one carrier.
"""

import itertools
import socket
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from mpx.endpoints.ftp.extensions.congestion import check_far_congestion
from mpx.endpoints.ftp.session import SessionOptions
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import SMALL_FILE_BYTES
from mpx.engine.path_set import interleaved
from mpx.engine.stream import StreamTotals, summed
from mpx.engine.tuner import Sample
from mpx.errors import UsageError
from mpx.location import Location
from mpx.net import congestion_control
from mpx.units import counted

if TYPE_CHECKING:
    from mpx.endpoints.ftp.mode_e.download_worker import DownloadWorker
    from mpx.engine.range_scheduler import Pending

FILES_AT_ONCE = 4
LOST_S = 1.0  # what has not arrived by then will be sent again


class _Worker(Protocol):
    gone: bool  # the server lets no further session in

    def totals(self) -> dict[str, StreamTotals]: ...
    def silent_s(self, path: str) -> float | None: ...
    def renew(self) -> None: ...
    def cut(self) -> None: ...
    def start(self) -> None: ...
    def join(self) -> None: ...


class _WorkerCarrier:
    """What both directions share: adding up what the lanes have done."""

    tunable = True

    def __init__(self, context: CarrierContext) -> None:
        self._context = context
        self._before: dict[str, StreamTotals] = {}
        self._workers: Sequence[_Worker] = ()
        self._streams = dict.fromkeys(context.streams.paths.names, 0)
        self._streams[context.streams.paths.names[0]] = 1
        self._order = interleaved(self._streams)  # the path of each stream
        self._sharing = threading.Lock()
        self._started = 0  # of the lanes
        self._moved = (0, time.monotonic())  # bytes, and since when there are as many

    def start(self) -> None:
        """See Carrier. One lane begins; the server may admit few, and no copy ends without a finisher."""
        with self._sharing:
            self._start_lanes(1)

    def _start_lanes(self, most: int) -> None:
        for worker in self._workers[self._started : most]:
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
        """Divide the streams over the lanes that are not gone."""
        raise NotImplementedError

    def connections(self) -> Sequence[socket.socket]:
        """See Carrier."""
        return ()

    def renew_streams(self) -> None:
        """See Carrier."""
        for worker in self._workers:
            worker.renew()

    def stop(self) -> None:
        """See Carrier."""
        for worker in self._workers:
            worker.cut()

    def join(self) -> None:
        """See Carrier."""
        for worker in self._workers[: self._started]:
            worker.join()

    def samples(self) -> dict[str, Sample]:
        """See Carrier. Shares the streams anew, since files have begun and ended, and sessions too."""
        with self._sharing:
            if self._context.events.may_spread.is_set():
                self._start_lanes(len(self._workers))
            self._share()
        sums = summed(*(worker.totals() for worker in self._workers))
        before, self._before = self._before, sums
        moved_bytes = sum(each.bytes for each in sums.values())
        left_bytes = max(0, self._context.queue.listed_todo_bytes - moved_bytes)
        still, changing = self._is_still(moved_bytes), self._is_changing()
        none, samples = StreamTotals(), {}
        for path in self._context.streams.paths.names:
            now = sums.get(path, none)
            # Who is first takes the next: so each path carries of the rest what it carried so far.
            share = now.bytes / moved_bytes if moved_bytes else 1 / len(self._context.streams.paths.names)
            left = round(left_bytes * share)
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
            queue_s=sums.queue_s,
            window_bps=sums.window_bps,
            still=still,
            changing=changing,
        )

    def _is_changing(self) -> bool:
        """Tell whether streams are under way that are to be replaced by others."""
        return False

    def _is_still(self, moved_bytes: int) -> bool:
        """Tell whether all that the gate let through has arrived, or what is missing was lost."""
        now = time.monotonic()
        if moved_bytes != self._moved[0]:
            self._moved = moved_bytes, now
        gate = self._context.gate
        return gate.is_shut and (moved_bytes >= gate.passed_bytes or now - self._moved[1] > LOST_S)


class UploadCarrier(_WorkerCarrier):
    """Local files to a GridFTP server."""

    def __init__(self, location: Location, options: SessionOptions, context: CarrierContext) -> None:
        from mpx.endpoints.ftp.mode_e.upload_worker import UploadWorker

        super().__init__(context)
        files = context.options.files or FILES_AT_ONCE
        self._uploads = [
            UploadWorker(i, location, options, context)
            for i in range(min(files, context.options.max_sessions))
        ]
        self._workers = self._uploads

    def _share(self) -> None:
        streams = self._order
        living = [worker for worker in self._uploads if not worker.gone]
        for i, worker in enumerate(living):
            worker.sessions = min(len(living), len(streams))
            if i < len(streams):
                worker.allowed.set()
            else:
                worker.allowed.clear()
        busy = [worker for worker in self._uploads if worker.is_busy]
        large = [worker.todo_bytes > SMALL_FILE_BYTES for worker in busy]
        for worker, share in zip(busy, dealt(streams, large), strict=True):
            worker.target = share
        for worker in self._uploads:
            if worker not in busy:
                worker.target = streams[: max(1, len(streams) - len(busy))]

    def set_congestion(self, name: str) -> None:
        """See Carrier."""
        congestion_control.check_congestion(name)  # before any lane has it for its next streams
        for worker in self._uploads:
            worker.switch_congestion(name)

    def connections(self) -> Sequence[socket.socket]:
        """See Carrier."""
        return [connection for worker in self._uploads for connection in worker.connections()]


class DownloadCarrier(_WorkerCarrier):
    """Files of a GridFTP server to local ones."""

    def __init__(
        self,
        location: Location,
        options: SessionOptions,
        context: CarrierContext,
        *,
        sessions: int,
        congestions: Sequence[str] = (),
    ) -> None:
        from mpx.endpoints.ftp.mode_e.download_worker import DownloadWorker
        from mpx.engine.range_scheduler import RangeScheduler

        super().__init__(context)
        self._congestions = congestions  # which the server can be told to send with
        scheduler = RangeScheduler(context)
        ports = context.streams.listen_ports
        if ports and ports[1] - ports[0] + 1 < sessions:
            sessions = ports[1] - ports[0] + 1
            context.supervisor.note(
                f"at most {counted(sessions, 'session')} for data: each needs a port of --port-range"
            )
        paths = context.streams.paths.names
        self._downloads = [
            DownloadWorker(
                i,
                location,
                options,
                context,
                scheduler,
                paths[i % len(paths)],
                self._others,
                self._may_switch,
            )
            for i in range(sessions)
        ]
        self._workers = self._downloads

    def _share(self) -> None:
        """Use as many sessions as there are, each with as few connections as will do."""
        for path, streams in self._streams.items():
            living = [worker for worker in self._downloads if not worker.gone and worker.path == path]
            sessions = min(streams, len(living))
            each = sessions if self._context.events.one_connection.is_set() else streams
            shares = spread(each, [False] * sessions) + [0] * (len(living) - sessions)
            for worker, share in zip(living, shares, strict=True):
                worker.target = share

    def set_congestion(self, name: str) -> None:
        """See Carrier. The server sends; mpx serve does as it is told with the next retrieves."""
        check_far_congestion(name, self._congestions)
        for worker in self._downloads:
            worker.congestion = name

    def connections(self) -> Sequence[socket.socket]:
        """See Carrier."""
        return [connection for worker in self._downloads for connection in worker.connections()]

    def _is_changing(self) -> bool:
        return any(worker.is_changing for worker in self._downloads)

    def _may_switch(self) -> bool:
        """Tell whether one more session may change its connections: at most half of them at a time."""
        active = sum(worker.target > 0 and not worker.gone for worker in self._downloads)
        return sum(worker.is_switching for worker in self._downloads) < max(1, active // 2)

    def _others(self, worker: "DownloadWorker") -> "list[Pending]":
        return [entry for other in self._downloads if other is not worker for entry in other.under_way()]


class StreamCarrier(_WorkerCarrier):
    """Between local files and any FTP server, in MODE S: one connection per session."""

    def __init__(
        self,
        location: Location,
        options: SessionOptions,
        context: CarrierContext,
        *,
        upload: bool,
        whole_files: bool,
        sessions: int,
    ) -> None:
        from mpx.endpoints.ftp.mode_s.worker import WORTH_CONNECTING, StreamWorker
        from mpx.engine.range_scheduler import RangeScheduler

        super().__init__(context)
        scheduler = RangeScheduler(context, WORTH_CONNECTING)
        self._sessions = [
            StreamWorker(i, location, options, context, scheduler, upload=upload, whole_files=whole_files)
            for i in range(sessions)
        ]
        self._workers = self._sessions

    def _share(self) -> None:
        """Let so many sessions work: each is one stream, so there are never more than sessions allowed."""
        living = [worker for worker in self._sessions if not worker.gone]
        streams = sum(self._streams.values())
        for i, worker in enumerate(living):
            worker.target = 1 if i < streams else 0

    def set_congestion(self, name: str) -> None:
        """See Carrier. Connections last for one piece; the next ones use it."""
        raise UsageError(f"a transfer in MODE S cannot switch its congestion control to {name!r}")


def spread(streams: int, large: Sequence[bool]) -> list[int]:
    """Divide streams over lanes: one each, the rest over those with a large file, or all if none has."""
    if not large:
        return []
    shares = [1] * len(large)
    takers = [i for i, is_large in enumerate(large) if is_large] or list(range(len(large)))
    for k in range(streams - len(large)):
        shares[takers[k % len(takers)]] += 1
    return shares


def dealt(streams: Sequence[str], large: Sequence[bool]) -> list[tuple[str, ...]]:
    """Deal streams, given by their paths, to lanes as `spread` has their numbers; all paths to each alike.

    Where there are fewer streams than lanes some paths have one more.
    """
    shares = spread(len(streams), large)
    workers: list[list[str]] = [[] for _ in large]
    deck = itertools.cycle(streams)
    while open_lanes := [i for i, share in enumerate(shares) if len(workers[i]) < share]:
        for i in open_lanes:
            workers[i].append(next(deck))
    return [tuple(worker) for worker in workers]
