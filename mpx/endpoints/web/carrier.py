"""The carrier of HTTP: as many workers as streams are wanted, each with a connection of its own."""

import socket
from collections.abc import Sequence

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.answers import Answers
from mpx.endpoints.web.download_worker import WebDownloadWorker
from mpx.endpoints.web.lanes import Pipelining
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.errors import UsageError


class WebDownloadCarrier(WorkerCarrier):
    """Files of a web server to local ones. Workers are made when they are first wanted, and then stay."""

    def __init__(self, access: WebAccess, context: CarrierContext, *, whole_files: bool) -> None:
        super().__init__(context)
        self._access, self._whole_files = access, whole_files
        self._scheduler = RangeScheduler(context)
        self._answers, self._pipelining = Answers(access, context), Pipelining()
        self._lanes: list[WebDownloadWorker] = [self._made(0, context.streams.paths.names[0])]
        self._workers = self._lanes
        self._may_spread = False

    def _made(self, number: int, path: str) -> WebDownloadWorker:
        return WebDownloadWorker(
            number,
            path,
            self._access,
            self._context,
            self._scheduler,
            self._answers,
            self._pipelining,
            lambda worker: [other for other in list(self._lanes) if other is not worker],
            whole_files=self._whole_files,
        )

    def spread(self) -> None:
        """See Carrier."""
        self._may_spread = True
        super().spread()

    def _share(self) -> None:
        """Give each path as many workers as it is to have streams, making those that are missing."""
        is_open = self._may_spread and not self._is_over
        for path, streams in self._streams.items():
            there = [worker for worker in self._lanes if worker.path == path]
            if is_open:  # none takes the place of one that the server refuses
                made = [self._made(len(self._lanes) + i, path) for i in range(streams - len(there))]
                self._lanes += made
                there += made
            for i, worker in enumerate(worker for worker in there if not worker.gone):
                worker.target = 1 if i < streams else 0
        if is_open:
            self._start_workers(len(self._lanes))

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 the same for all
        """See Carrier."""
        raise UsageError(f"the web server sends with the congestion control of its own, not with {name!r}")

    def connections(self, path: str) -> Sequence[socket.socket]:
        """See Carrier."""
        return [each for worker in list(self._lanes) if worker.path == path for each in worker.connections()]
