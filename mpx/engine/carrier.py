"""Carriers move bytes from a source endpoint to a destination endpoint: the protocol, and its parameters.

A carrier runs workers (one session each) and streams (data connections) of its own. It takes files from the
queue and reports what arrived. It is given the number of streams, the rate and the congestion control.
Journals, checksums and tuners stand above it.
"""

import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mpx.choices import PortRange
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_control import PathControl
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.reconnecting import Reconnecting
from mpx.engine.stop import Failure
from mpx.engine.stream_paths import DefaultPath, Paths
from mpx.engine.tuner import Sample
from mpx.errors import MpxError
from mpx.options import CopyOptions
from mpx.report import Severity

SHORT_BYTES = 2 * 1024 * 1024  # copies of no more are short
BYTES_EACH, SHORT_BYTES_EACH = 256 * 1024, 64 * 1024


class Supervisor(Protocol):
    """Keeps account of the files of a copy. May be called from any thread."""

    def whole(self, file: FileTransfer) -> None:
        """Take a file of which every byte has arrived."""
        ...

    def given_up(self, file: FileTransfer, error: MpxError) -> None:
        """Record that a file cannot be copied; others may be."""
        ...

    def forgot(self, file: FileTransfer) -> None:
        """Discard what was recorded as arrived of a file; what is still right has been recorded anew."""
        ...

    def again(self, file: FileTransfer, start: int, end: int) -> None:
        """Have [start, end) of a file moved once more, whatever of it has arrived and was verified."""
        ...

    def prove(self, file: FileTransfer) -> None:
        """Record as arrived what the checksums of both ends show to be there; may raise any MpxError."""
        ...

    def describe(self, name: str, *, anew: bool = False) -> FileInfo | None:
        """Return what a source is now, None where it is gone; may raise any MpxError.

        `anew`: over a connection that is not kept, as each may lead to another of several servers.
        """
        ...

    def relies_on_checksums(self) -> bool:
        """Tell whether every file will be compared by checksum; one that cannot be fails from now on."""
        ...

    def stream_ended(self, subflows: int) -> None:
        """Record how many subflows a stream of Multipath TCP had when it had most; 0: it was plain TCP."""
        ...

    def note(self, text: str, severity: Severity = Severity.INFO, /) -> None:
        """Add a line for people to the report; see OnNote."""
        ...


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How the streams (data connections) of a copy are opened."""

    congestion: str | None = None  # the congestion control that they begin with; None: their kernel's choice
    over_mptcp: bool = False  # they are of Multipath TCP, where the server speaks it
    source_ports: PortRange | None = None  # of streams that this host opens
    listen_ports: PortRange | None = None  # of streams that the server opens
    paths: Paths = field(default_factory=DefaultPath)
    is_short: bool = False  # the copy is over within some round trips
    found: Mapping[str, str] = field(default_factory=dict)  # the same, of paths that begin otherwise

    def congestion_of(self, path: str) -> str | None:
        """Return the congestion control that streams of a path begin with."""
        return self.found.get(path, self.congestion)

    @property
    def bytes_each(self) -> int:
        """A file needs no more than one stream for so many bytes."""
        return SHORT_BYTES_EACH if self.is_short else BYTES_EACH


@dataclass(frozen=True, slots=True)
class ServerEvents:
    """What the server has shown so far. Set by the thread that sees it, read by any."""

    inbound: threading.Event = field(default_factory=threading.Event)  # it has connected to us
    admitted: threading.Event = field(default_factory=threading.Event)  # a session for data could be opened
    may_spread: threading.Event = field(default_factory=threading.Event)  # nobody waits for a session
    one_connection: threading.Event = field(default_factory=threading.Event)  # a session: it refuses more
    reconnecting: Reconnecting = field(default_factory=Reconnecting)


@dataclass(frozen=True, slots=True)
class CarrierContext:
    """What a carrier works with: where files come from, what limits it, and whom it reports to."""

    options: CopyOptions
    queue: FileQueue
    controls: Mapping[str, PathControl]  # by path
    failure: Failure
    supervisor: Supervisor
    streams: StreamSettings = field(default_factory=StreamSettings)
    events: ServerEvents = field(default_factory=ServerEvents)

    @property
    def limiter(self) -> RateLimiter:
        """What holds back the bytes of a carrier that uses one path only."""
        (control,) = self.controls.values()
        return control.limiter


class Carrier(Protocol):
    """Moves files. Started once; ends when every file is settled or the copy fails."""

    def start(self) -> None:
        """Begin to take files from the queue."""
        ...

    def spread(self) -> None:
        """Use as many sessions as there is work for: the committer has one. From any thread."""
        ...

    def set_streams(self, path: str, streams: int) -> None:
        """Set the number of data connections on a path, for all files together."""
        ...

    def renew_streams(self, path: str) -> None:
        """Close every data connection of a path at its next block edge and open new ones in their place."""
        ...

    def set_congestion(self, path: str, name: str) -> None:
        """Switch open streams of a path and all later ones; raises UsageError if that is not permitted."""
        ...

    def connections(self, path: str) -> Sequence[socket.socket]:
        """Return those of a path that data move over now, in either direction, as far as they last."""
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
