"""The carrier between two servers of XRootD of which the destination reads from the source."""

from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.xrootd.lanes import XrootdLanes
from mpx.endpoints.xrootd.pair_worker import XrootdPairWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.errors import UsageError


class XrootdPairCarrier(WorkerCarrier):
    """A stream is a file under way."""

    def __init__(
        self, lanes: tuple[XrootdLanes, XrootdLanes], options: LaneOptions, context: CarrierContext
    ) -> None:
        super().__init__(context)
        scheduler = RangeScheduler(context)
        self._pairs = [
            XrootdPairWorker(number, lanes, options, context, scheduler)
            for number in range(context.options.max_sessions)
        ]
        self._workers = self._pairs

    def _share(self) -> None:
        streams = sum(self._streams.values())
        for i, worker in enumerate([worker for worker in self._pairs if not worker.gone]):
            worker.target = 1 if i < streams else 0

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 the same for all
        """See Carrier."""
        raise UsageError(f"servers that send to each other are not told to use {name!r}")
