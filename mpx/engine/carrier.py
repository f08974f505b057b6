"""What moves the bytes from a source endpoint to a destination endpoint: the seam and what it needs.

A carrier runs workers (one session each) and streams (data connections) of its own. It takes files from the
queue and reports what arrived. It is given the number of streams, the rate and the congestion control.
Journals, checksums and tuners stand above it.
"""

import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mpx.choices import PortRange
from mpx.engine.chunk_gate import ChunkGate
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.stop import Failure
from mpx.engine.stream_paths import DefaultPath, Paths
from mpx.engine.tuner import Sample
from mpx.errors import MpxError
from mpx.options import CopyOptions


@dataclass(frozen=True, slots=True)
class CarrierContext:
    """What a carrier works with: where files come from, what limits it, and whom it reports to."""

    options: CopyOptions
    queue: FileQueue
    limiter: RateLimiter
    gate: ChunkGate
    failure: Failure
    whole: Callable[[FileTransfer], None]  # every byte of the file has arrived
    given_up: Callable[[FileTransfer, MpxError], None]  # this file cannot be copied; others may
    forgot: Callable[[FileTransfer], None]  # what had arrived of this file is not believed any more
    note: Callable[[str], None]  # a line for the report
    prove: Callable[[FileTransfer], None]  # find out by checksum what has arrived without being recorded
    verifies: Callable[[], bool] = lambda: False  # every byte will be compared by checksum: it is relied on
    describe: Callable[[str], FileInfo | None] = lambda _: None  # what a source is now
    over_mptcp: bool = False  # streams are of Multipath TCP, where the server speaks it
    subflows: Callable[[int], None] = lambda _: None  # that such a stream had when it had most; 0: plain TCP
    congestion: str | None = None  # congestion control that streams begin with; None: their kernel's choice
    congestion_refused: threading.Event = field(default_factory=threading.Event)  # by a server: it goes on
    source_ports: PortRange | None = None
    inbound: threading.Event = field(default_factory=threading.Event)  # the server has connected to us
    listen_ports: PortRange | None = None
    admitted: threading.Event = field(default_factory=threading.Event)  # a session for data could be opened
    may_spread: threading.Event = field(default_factory=threading.Event)  # the committer has its session
    paths: Paths = field(default_factory=DefaultPath)  # which the streams take


class Carrier(Protocol):
    """Moves files. Started once; ends when every file is settled or the copy fails.

    `tunable` is False where the number of streams cannot be changed while bytes flow.
    """

    tunable: bool

    def start(self) -> None:
        """Begin to take files from the queue."""
        ...

    def set_streams(self, path: str, streams: int) -> None:
        """Set the number of data connections on a path, for all files together."""
        ...

    def renew_streams(self) -> None:
        """Close every data connection at its next block edge and open new ones in their place."""
        ...

    def set_congestion(self, name: str) -> None:
        """Switch open streams and all later ones; raises UsageError if that is not permitted."""
        ...

    def connections(self) -> Sequence[socket.socket]:
        """Return the connections that data move over now, in either direction, as far as they last."""
        ...

    def samples(self) -> dict[str, Sample]:
        """Return what has been moved so far, by path."""
        ...

    def silent_s(self, path: str) -> float | None:
        """Return for how long nothing has come of what is under way on a path; None where nothing is."""
        ...

    def stop(self) -> None:
        """Cut every connection; what has arrived stays."""
        ...

    def join(self) -> None:
        """Wait until every thread has ended."""
        ...
