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

    def __init__(self, work: CarrierContext) -> None:
        self._work = work
        self._before: dict[str, StreamTotals] = {}
        self._lanes: Sequence[_Worker] = ()
        self._streams = dict.fromkeys(work.paths.names, 0)
        self._streams[work.paths.names[0]] = 1
        self._order = interleaved(self._streams)  # the path of each stream
        self._sharing = threading.Lock()
        self._started = 0  # of the lanes
        self._moved = (0, time.monotonic())  # bytes, and since when there are as many

    def start(self) -> None:
        """See Carrier. One lane begins; the server may admit few, and no copy ends without a finisher."""
        with self._sharing:
            self._start_lanes(1)

    def _start_lanes(self, most: int) -> None:
        for lane in self._lanes[self._started : most]:
            try:
                lane.start()
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
        for lane in self._lanes:
            lane.renew()

    def stop(self) -> None:
        """See Carrier."""
        for lane in self._lanes:
            lane.cut()

    def join(self) -> None:
        """See Carrier."""
        for lane in self._lanes[: self._started]:
            lane.join()

    def samples(self) -> dict[str, Sample]:
        """See Carrier. Shares the streams anew, since files have begun and ended, and sessions too."""
        with self._sharing:
            if self._work.may_spread.is_set():
                self._start_lanes(len(self._lanes))
            self._share()
        sums = summed(*(lane.totals() for lane in self._lanes))
        before, self._before = self._before, sums
        moved_bytes = sum(each.bytes for each in sums.values())
        left_bytes = max(0, self._work.pool.listed_todo_bytes - moved_bytes)
        still, changing = self._is_still(moved_bytes), self._is_changing()
        none, samples = StreamTotals(), {}
        for path in self._work.paths.names:
            now = sums.get(path, none)
            # Who is first takes the next: so each path carries of the rest what it carried so far.
            share = now.bytes / moved_bytes if moved_bytes else 1 / len(self._work.paths.names)
            left = round(left_bytes * share)
            samples[path] = self._sample(now, before.get(path, none), left, still, changing)
        return samples

    def silent_s(self, path: str) -> float | None:
        """See Carrier."""
        silent = [lane.silent_s(path) for lane in self._lanes]
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
        gate = self._work.gate
        return gate.is_shut and (moved_bytes >= gate.passed_bytes or now - self._moved[1] > LOST_S)


class UploadCarrier(_WorkerCarrier):
    """Local files to a GridFTP server."""

    def __init__(self, location: Location, options: SessionOptions, work: CarrierContext) -> None:
        from mpx.endpoints.ftp.mode_e.upload_worker import UploadWorker

        super().__init__(work)
        files = work.options.files or FILES_AT_ONCE
        self._uploads = [
            UploadWorker(i, location, options, work) for i in range(min(files, work.options.max_sessions))
        ]
        self._lanes = self._uploads

    def _share(self) -> None:
        streams = self._order
        living = [lane for lane in self._uploads if not lane.gone]
        for i, lane in enumerate(living):
            lane.sessions = min(len(living), len(streams))
            if i < len(streams):
                lane.allowed.set()
            else:
                lane.allowed.clear()
        busy = [lane for lane in self._uploads if lane.is_busy]
        large = [lane.todo_bytes > SMALL_FILE_BYTES for lane in busy]
        for lane, share in zip(busy, dealt(streams, large), strict=True):
            lane.target = share
        for lane in self._uploads:
            if lane not in busy:
                lane.target = streams[: max(1, len(streams) - len(busy))]

    def set_congestion(self, name: str) -> None:
        """See Carrier."""
        congestion_control.check_congestion(name)  # before any lane has it for its next streams
        for lane in self._uploads:
            lane.switch_congestion(name)

    def connections(self) -> Sequence[socket.socket]:
        """See Carrier."""
        return [connection for lane in self._uploads for connection in lane.connections()]


class DownloadCarrier(_WorkerCarrier):
    """Files of a GridFTP server to local ones."""

    def __init__(
        self,
        location: Location,
        options: SessionOptions,
        work: CarrierContext,
        *,
        sessions: int,
        congestions: Sequence[str] = (),
    ) -> None:
        from mpx.endpoints.ftp.mode_e.download_worker import DownloadWorker
        from mpx.engine.range_scheduler import RangeScheduler

        super().__init__(work)
        self._congestions = congestions  # which the server can be told to send with
        shelf = RangeScheduler(work)
        ports = work.listen_ports
        if ports and ports[1] - ports[0] + 1 < sessions:
            sessions = ports[1] - ports[0] + 1
            work.note(f"at most {counted(sessions, 'session')} for data: each needs a port of --port-range")
        paths = work.paths.names
        self._downloads = [
            DownloadWorker(
                i, location, options, work, shelf, paths[i % len(paths)], self._others, self._may_switch
            )
            for i in range(sessions)
        ]
        self._lanes = self._downloads

    def _share(self) -> None:
        """Use as many sessions as there are, each with as few connections as will do."""
        for path, streams in self._streams.items():
            living = [lane for lane in self._downloads if not lane.gone and lane.path == path]
            sessions = min(streams, len(living))
            each = sessions if self._work.one_connection.is_set() else streams
            shares = spread(each, [False] * sessions) + [0] * (len(living) - sessions)
            for lane, share in zip(living, shares, strict=True):
                lane.target = share

    def set_congestion(self, name: str) -> None:
        """See Carrier. The server sends; mpx serve does as it is told with the next retrieves."""
        check_far_congestion(name, self._congestions)
        for lane in self._downloads:
            lane.congestion = name

    def connections(self) -> Sequence[socket.socket]:
        """See Carrier."""
        return [connection for lane in self._downloads for connection in lane.connections()]

    def _is_changing(self) -> bool:
        return any(lane.is_changing for lane in self._downloads)

    def _may_switch(self) -> bool:
        """Tell whether one more session may change its connections: at most half of them at a time."""
        active = sum(lane.target > 0 and not lane.gone for lane in self._downloads)
        return sum(lane.is_switching for lane in self._downloads) < max(1, active // 2)

    def _others(self, lane: "DownloadWorker") -> "list[Pending]":
        return [entry for other in self._downloads if other is not lane for entry in other.under_way()]


class StreamCarrier(_WorkerCarrier):
    """Between local files and any FTP server, in MODE S: one connection per session."""

    def __init__(
        self,
        location: Location,
        options: SessionOptions,
        work: CarrierContext,
        *,
        upload: bool,
        whole_files: bool,
        sessions: int,
    ) -> None:
        from mpx.endpoints.ftp.mode_s.worker import WORTH_CONNECTING, StreamWorker
        from mpx.engine.range_scheduler import RangeScheduler

        super().__init__(work)
        shelf = RangeScheduler(work, WORTH_CONNECTING)
        self._sessions = [
            StreamWorker(i, location, options, work, shelf, upload=upload, whole_files=whole_files)
            for i in range(sessions)
        ]
        self._lanes = self._sessions

    def _share(self) -> None:
        """Let so many sessions work: each is one stream, so there are never more than sessions allowed."""
        living = [lane for lane in self._sessions if not lane.gone]
        streams = sum(self._streams.values())
        for i, lane in enumerate(living):
            lane.target = 1 if i < streams else 0

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
    lanes: list[list[str]] = [[] for _ in large]
    deck = itertools.cycle(streams)
    while open_lanes := [i for i, share in enumerate(shares) if len(lanes[i]) < share]:
        for i in open_lanes:
            lanes[i].append(next(deck))
    return [tuple(lane) for lane in lanes]
