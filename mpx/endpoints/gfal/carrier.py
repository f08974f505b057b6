"""The carrier that has gfal2 copy files: each stream is a file under way, in a process of its own."""

from mpx.endpoints.gfal.lanes import GfalLanes
from mpx.endpoints.gfal.places import GfalPlaces
from mpx.endpoints.gfal.worker import GfalWorker
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.errors import UsageError


class GfalCarrier(WorkerCarrier):
    """Between a server and this host, or two servers."""

    def __init__(
        self, lanes: GfalLanes, places: GfalPlaces, options: LaneOptions, context: CarrierContext
    ) -> None:
        """`lanes`: see GfalWorker."""
        super().__init__(context)
        self._lanes = lanes
        scheduler = RangeScheduler(context)
        self._workers = self._all = [
            GfalWorker(i, lanes, places, options, context, scheduler)
            for i in range(context.options.max_sessions)
        ]

    def start(self) -> None:
        """See Carrier. A process is what limits nobody, so the committer asks for its own at once."""
        self._context.events.admitted.set()
        super().start()

    def _share(self) -> None:
        """Set how many files are under way at once."""
        living = [worker for worker in self._all if not worker.gone]
        streams = sum(self._streams.values())
        for i, worker in enumerate(living):
            worker.target = 1 if i < streams else 0

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 there is one
        """See Carrier."""
        raise UsageError(f"gfal2's connections begin with a congestion control; none changes to {name!r}")
