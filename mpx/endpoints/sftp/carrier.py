"""The carrier of SFTP: how many sessions of a copy work at once."""

from mpx.endpoints.sftp.lanes import LaneOptions, SftpLanes
from mpx.endpoints.sftp.worker import SMALLEST_PIECE, SftpWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.errors import UsageError
from mpx.net.congestion_control import check_congestion


class SftpCarrier(WorkerCarrier):
    """Between local files and those of an SFTP server. A stream is a session of its own."""

    def __init__(
        self,
        pool: SftpLanes,
        options: LaneOptions,
        context: CarrierContext,
        *,
        upload: bool,
        sessions: int,
        whole_files: bool = False,
        switches: bool = False,
    ) -> None:
        """`sessions`: at most. `whole_files`: each is moved by one of them.

        `switches`: connections that send can be given another congestion control.
        """
        super().__init__(context)
        scheduler = RangeScheduler(context, SMALLEST_PIECE)
        self._lanes = [
            SftpWorker(i, pool, options, context, scheduler, upload=upload, whole_files=whole_files)
            for i in range(sessions)
        ]
        self._workers = self._lanes
        self._switches = switches

    def start(self) -> None:
        """See Carrier. The copy has a session already, so the committer asks for its own at once."""
        self._context.events.admitted.set()
        super().start()

    def _share(self) -> None:
        """Set how many sessions work: each is one stream, so there are never more than sessions allowed."""
        living = [worker for worker in self._lanes if not worker.gone]
        streams = sum(self._streams.values())
        for i, worker in enumerate(living):
            worker.target = 1 if i < streams else 0

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 there is one
        """See Carrier. The connections are not ours: their program is told."""
        if not self._switches:
            raise UsageError(f"another program moves the data, so that {name!r} cannot be chosen for them")
        check_congestion(name)
        for worker in self._lanes:
            worker.congestion = name
