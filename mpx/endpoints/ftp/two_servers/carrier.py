"""The carrier between two servers that send to each other: how many streams each pair of sessions gets."""

import math
import time
from collections.abc import Sequence

from mpx.endpoints.ftp.mode_e.carriers import resized
from mpx.endpoints.ftp.two_servers.pair_ahead import SMALLEST_PIECE
from mpx.endpoints.ftp.two_servers.pair_worker import PairWorker
from mpx.endpoints.ftp.two_servers.server_pair import ServerPair
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import SMALL_FILE_BYTES
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.errors import UsageError

# Pairs for a large file whose sender shares its blocks over all connections of a pair: who comes first on a
# path leaves little to the others for seconds, and within a pair that is made up for.
SHARING_PAIRS = 1
IDLE_S = 0.2  # a worker that has had nothing to do for so long could do the work of others


class ThirdPartyCarrier(WorkerCarrier):
    """Files of a server to another one, which they go to straight."""

    def __init__(self, servers: ServerPair, context: CarrierContext) -> None:
        super().__init__(context)
        scheduler = RangeScheduler(context, SMALLEST_PIECE, SMALL_FILE_BYTES)
        self._pairs = [
            PairWorker(i, servers, context, scheduler, self._idle_goodput)
            for i in range(context.options.max_sessions)
        ]
        self._workers = self._pairs
        self._mode_e, self._parts = servers.mode_e, servers.parts
        self._shares_blocks = servers.shares_blocks

    def _share(self) -> None:
        """Use as many pairs as there are, or as files that are sent whole; in MODE S each is one stream.

        Servers of ours need one for a large file, and more for many small ones.
        """
        living = [worker for worker in self._pairs if not worker.gone]
        streams = sum(self._streams.values())
        most = streams if self._parts or not self._mode_e else max(1, self._context.queue.waiting[2])
        if self._shares_blocks:
            most = min(most, max(SHARING_PAIRS, self._context.queue.waiting[2]))
        pairs = min(1 if self._context.streams.is_short else streams, most, len(living))
        shares = (
            resized([worker.target for worker in living[:pairs]], streams) if self._mode_e else [1] * pairs
        )
        for worker, share in zip(living, shares + [0] * (len(living) - pairs), strict=True):
            worker.target = share
        working = living[:pairs]
        for worker, part in zip(working, shares_of([each.ahead.goodput for each in working]), strict=True):
            worker.ahead.share = part
            worker.ahead.queued_by_all = sum(each.ahead.queued for each in working)

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 there is one
        """See Carrier. No connection is ours."""
        raise UsageError(f"servers that send to each other are not told to use {name!r}")

    def _idle_goodput(self) -> float:
        """Return the goodput of the fastest worker that has had nothing to do for some time, bytes/s."""
        before_s = time.monotonic() - IDLE_S
        idle = [worker for worker in self._pairs if (worker.idle_since_s or math.inf) < before_s]
        return max((worker.ahead.goodput for worker in idle), default=0.0)

    def _is_changing(self) -> bool:
        return any(worker.is_changing for worker in self._pairs if worker.target)


def shares_of(goodputs: Sequence[float]) -> list[float]:
    """Return which share of what is left each of several pairs is to have; 0: its goodput is not known yet.

    Such a one counts as the others do: whoever came first is not to queue what it has to share soon.
    """
    known = [each for each in goodputs if each]
    usual = sum(known) / len(known) if known else 1.0
    expected = [each or usual for each in goodputs]
    return [each / sum(expected) for each in expected]
