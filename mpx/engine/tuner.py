"""The contract of the tuners: how many streams each path of a group should carry, decided while bytes flow.

A tuner is pure: it takes the time and what was measured, and answers with decisions. It opens no
socket, reads no clock and draws no random number of its own. The control loop calls `observe` about every
100 ms; most calls are answered with nothing. One tuner serves one group of paths that share a
bottleneck (a group of one is usual), so that one path's change is never taken for another's result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

START = 4  # streams that a copy begins with, unless something is known of its path


@dataclass(frozen=True, slots=True)
class Sample:
    """What one path has done so far; counters run from the start of the copy and never fall.

    `limited_*` are the shares (0 to 1) of the time since the previous sample in which the path's
    streams, on average, were held back by the receiver's window or by our own send buffer
    (tcpi_rwnd_limited, tcpi_sndbuf_limited over tcpi_busy_time); None where the kernel does not tell
    us, as when the other side sends.
    """

    streams: int  # data connections that carry bytes now (those still connecting do not count)
    arrived_bytes: int  # file bytes that arrived for the first time
    bytes_left: int  # file bytes known to be still to move, of all files listed so far; this path's share
    rtt_s: float | None = None
    retransmits: int = 0  # segments sent again
    limited_by_receiver: float | None = None
    limited_by_sender: float | None = None
    queue_s: float | None = None  # by how much the round trips of data are longer than the shortest: queues
    window_bps: float | None = None  # what the receiver's window lets a stream carry while there is no queue
    queued_bytes: int = 0  # of those that arrived: over streams whose round trips showed a queue
    queued_lost: int = 0  # of those sent again, the same
    untold_bytes: int = 0  # of both, over streams of which nobody can tell
    untold_lost: int = 0
    changing: bool = False  # other streams were asked for, and those before still bring what is under way
    still: bool = False  # nothing is under way: what was handed out has arrived (after a barrier)
    busy_s: float = 0.0  # in which data was under way, summed over streams; 0 where the kernel does not tell


@dataclass(frozen=True, slots=True)
class Decision:
    """What a path should do from now on.

    With `barrier` the carrier hands out `chunk_bytes` and no more, waits until they have arrived,
    and opens its streams anew for the next decision, as the paper's GridFTP-APT does. Without it
    nothing stands still: streams come and go while bytes flow, and `chunk_bytes` is None.
    """

    path: str
    streams: int
    reason: str  # in words, for the report
    chunk_bytes: int | None = None
    barrier: bool = False


class Tuner(Protocol):
    """Decides on the number of streams. The first call of `observe` answers with where to start."""

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        """Take what was measured up to `now_s` (any monotonic origin) and say what should change.

        A decision stands until the next one for its path; an empty answer changes nothing.
        """
        ...

    def disturbed(self, now_s: float) -> None:
        """Take note that what is measured now is not what was: the streams have switched to something else.

        What had been learnt from others may be void.
        """
        ...
