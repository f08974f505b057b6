"""The carrier between two servers through this host: how many sessions with each work at once."""

from collections.abc import Callable

from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import SMALL_FILE_BYTES
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.relay import RelaySink, RelaySource
from mpx.engine.relay_worker import SMALLEST_PIECE, RelayWorker
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.errors import UsageError


class RelayCarrier(WorkerCarrier):
    """Files of a server to another one. `source` and `sink` make an end of a worker."""

    def __init__(
        self,
        source: Callable[[], RelaySource],
        sink: Callable[[], RelaySink],
        context: CarrierContext,
        *,
        parts: bool,
    ) -> None:
        """`parts`: of files can be sent and stored."""
        super().__init__(context)
        scheduler = RangeScheduler(context, SMALLEST_PIECE, SMALL_FILE_BYTES)
        self._relays = [
            RelayWorker(i, source(), sink(), context, scheduler, parts=parts)
            for i in range(context.options.max_sessions)
        ]
        self._workers = self._relays

    def _share(self) -> None:
        """Set how many sessions work: each is one stream."""
        living = [worker for worker in self._relays if not worker.gone]
        streams = sum(self._streams.values())
        for i, worker in enumerate(living):
            worker.target = int(i < streams)

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 there is one
        """See Carrier. Connections of a relay are not switched."""
        raise UsageError(f"what passes through this host cannot switch its congestion control to {name!r}")
