"""The carrier of MODE S: how many sessions of a copy work at once, each with one connection."""

from mpx.endpoints.ftp.mode_s.worker import WORTH_CONNECTING, StreamWorker
from mpx.endpoints.ftp.session import SessionOptions
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.errors import UsageError
from mpx.location import Location


class StreamCarrier(WorkerCarrier):
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
        super().__init__(context)
        scheduler = RangeScheduler(context, WORTH_CONNECTING)
        self._sessions = [
            StreamWorker(i, location, options, context, scheduler, upload=upload, whole_files=whole_files)
            for i in range(sessions)
        ]
        self._workers = self._sessions

    def _share(self) -> None:
        """Set how many sessions work: each is one stream, so there are never more than sessions allowed."""
        living = [worker for worker in self._sessions if not worker.gone]
        streams = sum(self._streams.values())
        for i, worker in enumerate(living):
            worker.target = 1 if i < streams else 0

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 there is one
        """See Carrier. Connections last for one piece; the next ones use it."""
        raise UsageError(f"a transfer in MODE S cannot switch its congestion control to {name!r}")
