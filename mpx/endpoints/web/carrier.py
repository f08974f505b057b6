"""The carriers of HTTP: as many workers as streams are wanted, each with a connection of its own."""

import socket
from collections.abc import Sequence

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.answers import Answers
from mpx.endpoints.web.download_worker import WebDownloadWorker
from mpx.endpoints.web.request_cost import RequestCost
from mpx.endpoints.web.upload_scheduler import UploadScheduler
from mpx.endpoints.web.upload_worker import WebUploadWorker
from mpx.endpoints.web.worker import WebWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.errors import UsageError
from mpx.net import congestion_control


class WebCarrier(WorkerCarrier):
    """Workers are made when they are first wanted, and then stay; a subclass makes them."""

    def __init__(self, access: WebAccess, context: CarrierContext) -> None:
        super().__init__(context)
        self._access = access
        self._scheduler = RangeScheduler(context)
        self._may_spread = False
        self._all: list[WebWorker] = []
        self._workers = self._all
        self._make(1, context.streams.paths.names[0])

    def _worker(self, number: int, path: str) -> WebWorker:
        """Make one."""
        raise NotImplementedError

    def _make(self, count: int, path: str) -> None:
        for _ in range(count):
            self._all.append(self._worker(len(self._all), path))

    def spread(self) -> None:
        """See Carrier."""
        self._may_spread = True
        super().spread()

    def _share(self) -> None:
        """Give each path as many workers as it is to have streams, making those that are missing."""
        is_open = self._may_spread and not self._is_over
        for path, streams in self._streams.items():
            there = sum(worker.path == path for worker in self._all)
            if is_open:  # none takes the place of one that the server refuses
                self._make(streams - there, path)
            living = [worker for worker in self._all if worker.path == path and not worker.gone]
            for i, worker in enumerate(living):
                worker.target = 1 if i < streams else 0
        if is_open:
            self._start_workers(len(self._all))

    def connections(self, path: str) -> Sequence[socket.socket]:
        """See Carrier."""
        return [each for worker in list(self._all) if worker.path == path for each in worker.connections()]


class WebDownloadCarrier(WebCarrier):
    """Files of a web server to local ones; with `whole_files` no parts are asked for."""

    def __init__(self, access: WebAccess, context: CarrierContext, *, whole_files: bool) -> None:
        self._whole_files = whole_files
        self._answers = Answers(access, context, whole_files=whole_files)
        self._pipelining = access.pipelining
        self._cost = RequestCost()
        self._downloads: list[WebDownloadWorker] = []
        super().__init__(access, context)

    def _worker(self, number: int, path: str) -> WebWorker:
        made = WebDownloadWorker(
            number,
            path,
            self._access,
            self._context,
            self._scheduler,
            self._answers,
            self._pipelining,
            self._cost,
            lambda worker: [other for other in list(self._downloads) if other is not worker],
            whole_files=self._whole_files,
        )
        self._downloads.append(made)
        return made

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 the same for all
        """See Carrier."""
        raise UsageError(f"the web server sends with the congestion control of its own, not with {name!r}")


class WebUploadCarrier(WebCarrier):
    """Local files to a web server; several workers share a large one where the server stores parts."""

    def __init__(self, access: WebAccess, context: CarrierContext) -> None:
        self._uploads = UploadScheduler(context)
        super().__init__(access, context)

    def _worker(self, number: int, path: str) -> WebWorker:
        return WebUploadWorker(number, path, self._access, self._context, self._uploads)

    def _share(self) -> None:
        """See WorkerCarrier."""
        super()._share()
        self._uploads.streams = max(1, sum(self._streams.values()))

    def set_congestion(self, path: str, name: str) -> None:
        """See Carrier."""
        congestion_control.check_congestion(name)  # before any worker has it for its next connection
        for worker in list(self._all):
            if worker.path == path:
                worker.switch_congestion(name)
