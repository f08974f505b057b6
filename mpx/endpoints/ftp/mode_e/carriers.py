"""The carriers of MODE E: how many streams each session of a copy gets, on which paths.

Each imports what moves its bytes once there is something to move, as a copy has one carrier.
"""

import itertools
import math
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpx.choices import PAPER
from mpx.endpoints.ftp.extensions.congestion import check_server_congestion
from mpx.endpoints.ftp.session import SessionOptions
from mpx.engine.carrier import SHORT_BYTES, CarrierContext
from mpx.engine.file_transfer import SMALL_FILE_BYTES
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.location import Location
from mpx.net import congestion_control
from mpx.units import counted

if TYPE_CHECKING:
    from mpx.endpoints.ftp.mode_e.download_worker import DownloadWorker

FILES_AT_ONCE = 4
MOST_OF_MEAN = 2  # streams of one session, over those of all in the mean


class UploadCarrier(WorkerCarrier):
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

    def join(self) -> None:
        """See Carrier."""
        for worker in self._uploads:
            worker.allowed.set()  # nobody waits for that any longer
        super().join()

    def set_congestion(self, path: str, name: str) -> None:
        """See Carrier."""
        congestion_control.check_congestion(name)  # before any worker has it for its next streams
        for worker in self._uploads:
            worker.switch_congestion(path, name)

    def connections(self, path: str) -> Sequence[socket.socket]:
        """See Carrier."""
        return [connection for worker in self._uploads for connection in worker.connections(path)]


class DownloadCarrier(WorkerCarrier):
    """Files of a GridFTP server to local ones."""

    def __init__(
        self,
        location: Location,
        options: SessionOptions,
        context: CarrierContext,
        congestions: Sequence[str] = (),
    ) -> None:
        from mpx.endpoints.ftp.mode_e.download_worker import DownloadWorker
        from mpx.engine.range_scheduler import RangeScheduler

        super().__init__(context)
        self._congestions = congestions  # that the server can be asked to send with
        # A short copy is one retrieve of all connections: further sessions would come too late.
        scheduler = (
            RangeScheduler(context, SHORT_BYTES) if context.streams.is_short else RangeScheduler(context)
        )
        # What a chunk of GridFTP-APT brings is to be shared by all of its streams.
        alone = context.options.tuner == PAPER
        sessions = len(context.streams.paths.names) if alone else context.options.max_sessions
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
        """Use as many sessions as there are."""
        for path, streams in self._streams.items():
            living = [worker for worker in self._downloads if not worker.gone and worker.path == path]
            sessions = min(1 if self._context.streams.is_short else streams, len(living))
            total = sessions if self._context.events.one_connection.is_set() else streams
            has_begun = any(worker.has_begun for worker in living)
            shares = resized([worker.target * has_begun for worker in living[:sessions]], total)
            for worker, share in zip(living, shares + [0] * (len(living) - sessions), strict=True):
                worker.target = share

    def set_congestion(self, path: str, name: str) -> None:
        """See Carrier. The server sends; mpx serve uses it from the next retrieve on."""
        check_server_congestion(name, self._congestions)
        for worker in self._downloads:
            if worker.path == path:
                worker.congestion = name

    def connections(self, path: str) -> Sequence[socket.socket]:
        """See Carrier."""
        sessions = (worker.session for worker in self._downloads if worker.path == path)
        return [each for session in sessions if session for each in session.open_connections()]

    def _is_changing(self) -> bool:
        return any(worker.is_changing for worker in self._downloads)

    def _may_switch(self, anew: bool) -> bool:
        """Tell whether one more session may change its connections: at most half of them at a time.

        `anew`: by another session, which a server that has refused some might not admit.
        """
        if anew and any(worker.gone for worker in self._downloads):
            return False
        active = sum(worker.target > 0 and not worker.gone for worker in self._downloads)
        return sum(worker.is_switching for worker in self._downloads) < max(1, active // 2)

    def _others(self, worker: "DownloadWorker") -> "list[DownloadWorker]":
        return [other for other in self._downloads if other is not worker]


def spread(streams: int, large: Sequence[bool]) -> list[int]:
    """Divide streams over workers: one each, the rest over those with a large file, or all if none has."""
    if not large:
        return []
    shares = [1] * len(large)
    takers = [i for i, is_large in enumerate(large) if is_large] or list(range(len(large)))
    for k in range(streams - len(large)):
        shares[takers[k % len(takers)]] += 1
    return shares


def resized(shares: Sequence[int], streams: int) -> list[int]:
    """Divide streams over sessions that have `shares` by now: one each at least, twice the mean at most.

    A session whose number changes carries nothing for some round trips, so few change, small ones first.
    Sessions that all begin get equal shares.
    """
    if not any(shares):
        return spread(streams, [False] * len(shares))
    most = math.ceil(MOST_OF_MEAN * streams / len(shares))
    new = [min(max(1, share), most) for share in shares]
    by_size = sorted(range(len(shares)), key=lambda i: shares[i])
    for i in by_size:
        new[i] += max(0, min(streams - sum(new), most - new[i]))
    for i in reversed(by_size):
        new[i] -= max(0, min(sum(new) - streams, new[i] - 1))
    return new


def dealt(streams: Sequence[str], large: Sequence[bool]) -> list[tuple[str, ...]]:
    """Deal streams, given by their paths, to workers as `spread` has their numbers; all paths to each alike.

    Where there are fewer streams than workers some paths have one more.
    """
    shares = spread(len(streams), large)
    workers: list[list[str]] = [[] for _ in large]
    deck = itertools.cycle(streams)
    while with_room := [i for i, share in enumerate(shares) if len(workers[i]) < share]:
        for i in with_room:
            workers[i].append(next(deck))
    return [tuple(worker) for worker in workers]
