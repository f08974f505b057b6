"""Downloads in MODE E, one retrieve: what was asked for, what has come, and whether the two agree."""

import threading
import time
from typing import Protocol

from mpx.endpoints.ftp.checksum_behind import ChecksumBehind
from mpx.endpoints.ftp.framing import BlockHeader, ReceivedEnds
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.ranges import Range, RangeSet
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, MpxError

BEYOND_BYTES = 4096  # asked for beyond the end of a file, to see that it is the end; one would do for most

LARGEST_BYTES = 1 << 50  # of any file; a header that says more was not made by a server


class SentTooMuch(ConnectionLost):
    """The server sends more than a retrieve asked for."""

    def __init__(self, retrieve: "PartialRetrieve") -> None:
        super().__init__(f"the server sends more of {retrieve.file.source} than it was asked for")
        self.retrieve = retrieve


class DownloadChannel(Protocol):
    """The connections over which retrieves come (download_channel.py)."""

    def add(self, retrieve: "PartialRetrieve") -> None:
        """Expect a retrieve, before it is asked for."""
        ...

    def forget(self, retrieve: "PartialRetrieve") -> None:
        """Expect nothing more of a retrieve."""
        ...

    def totals(self) -> StreamTotals:
        """Return the counters of all streams that there are and were."""
        ...


class RetrieveRefused(ConnectionLost):
    """A file was refused, so connections and the retrieves queued behind it do not match any more.

    `may_be_exact`: perhaps only because one byte more was asked for than it has.
    """

    def __init__(self, file: FileTransfer, why: MpxError, *, may_be_exact: bool = False) -> None:
        super().__init__(str(why))
        self.file = file
        self.why = why
        self.may_be_exact = may_be_exact


class PartialRetrieve:
    """One retrieve, queued at the server: [start, end) of a file, or all of one that is streamed.

    `is_last`: the file is to end by itself after it, so some bytes more are asked for. What comes is held: it
    counts as arrived only when the worker believes it, as a retrieve before it may have been refused, or have
    shown that the server sends other parts than those that it is asked for.
    """

    def __init__(
        self,
        file: FileTransfer,
        start: int,
        end: int,
        fd: int,
        channel: DownloadChannel,
        *,
        is_last: bool = False,
    ) -> None:
        self.channel = channel
        self.is_stream = file.is_streamed
        self.is_last = is_last
        self.number = 0  # in its channel
        self.file = file
        self.start = start
        self.end = end
        self.fd = fd
        self.sent_s = time.monotonic()
        self.begun = False  # the server has said that it sends this one now
        self.replied = False
        self.asked: ChecksumBehind | None = None  # of its file, behind it
        self._lock = threading.Lock()
        self._ends = ReceivedEnds()
        self._received = 0  # with what came twice
        self._reached = 0
        self._held = RangeSet()
        self._came = 0  # as far as it is to be written, with what came twice

    @property
    def is_answered(self) -> bool:
        """Whether the server has said all that it says of it."""
        return self.replied and (self.asked is None or self.asked.is_answered)

    @property
    def size_bytes(self) -> int:
        """How many bytes it is to bring; 0 of a file that is streamed."""
        return self.end - self.start

    @property
    def most_bytes(self) -> int:
        """How many bytes are asked for, if it is not a stream."""
        return self.size_bytes + (BEYOND_BYTES if self.is_last else 0)

    def fits(self, header: BlockHeader) -> bool:
        """Tell whether a block with this header can be part of what was asked for."""
        return self.is_stream or not header.count or header.offset + header.count <= self.most_bytes

    def admits(self, header: BlockHeader) -> bool:
        """Tell whether a connection that begins with this block may be the server's.

        One that sends too much of the end of a file is, and shows by it that it cannot be believed.
        """
        return self.fits(header) or (self.is_last and header.offset + header.count <= LARGEST_BYTES)

    def within(self, start: int, end: int) -> int:
        """Return how many of the bytes [start, end) of the file belong to what it is to bring."""
        return end - start if self.is_stream else max(0, min(end, self.end) - start)

    def to_write(self, start: int, end: int) -> list[Range]:
        """Return which bytes of a part that came there is use for, and hold them.

        Nothing of a finished file, and nothing twice.
        """
        new = [] if self.file.is_claimed else self.file.hold(start, end)
        with self._lock:
            self._came += end - start
            for each in new:
                self._held.add(*each)
        return new

    @property
    def left_bytes(self) -> int:
        """How many bytes the server still has to send of it, whoever has brought them since."""
        with self._lock:
            return max(0, self.size_bytes - self._came)

    @property
    def reached_bytes(self) -> int:
        """How far what has come reaches from its start: the size, of all of a file."""
        with self._lock:
            return self._reached

    def believe(self) -> int:
        """Count as arrived what was held; return how many bytes had not arrived before."""
        with self._lock:
            held, self._held = self._held, RangeSet()
        return self.file.believe(held)

    def disbelieve(self) -> None:
        """Let go of what was held."""
        with self._lock:
            held, self._held = self._held, RangeSet()
        self.file.disbelieve(held)

    def missing(self) -> RangeSet:
        """Return what of it has not come, whoever was to bring it: neither arrived nor held."""
        return self.file.not_here(self.start, self.end)

    @property
    def held_bytes(self) -> int:
        """How many bytes it holds that do not count as arrived."""
        with self._lock:
            return self._held.size

    def ended(self, total: int | None, received_bytes: int, reached_bytes: int) -> None:
        """Note that a connection is done: what it brought, how far, and the total if it announced it."""
        with self._lock:
            self._ends.end_of_data()
            if total:
                self._ends.end_of_file(total)
            self._received += received_bytes
            self._reached = max(self._reached, reached_bytes)

    @property
    def is_short(self) -> bool:
        """Whether fewer bytes came than it is to bring: the file has no more."""
        with self._lock:
            return min(self._received, self._reached) < self.size_bytes

    @property
    def is_long(self) -> bool:
        """Whether more came: the file does not end there, or what came is another part of it."""
        return not self.is_stream and self.reached_bytes > self.size_bytes

    @property
    def is_done(self) -> bool:
        """Whether every connection is done with it."""
        with self._lock:
            return self._ends.is_complete

    @property
    def is_gapless(self) -> bool:
        """Whether what is held is all of the file as far as it came, from its first byte on."""
        with self._lock:
            return self._held == RangeSet([(0, self._reached)])
