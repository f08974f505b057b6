"""MODE E framing (GFD.20), for client and server: block headers, ends of data and of files, markers.

A block is a header of 17 bytes and its data. EOD (end of data) ends what one connection brings of a
transfer; EOF (end of file) says how many connections there are, and so how many EODs make it whole.
Markers are preliminary replies: 111 (restart marker) says what has arrived, 112 and 113 how far a command
has come.
"""

import contextlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from mpx.endpoints.ftp.wire import Reply, format_ranges, parse_ranges, reply_line
from mpx.engine.ranges import Range
from mpx.engine.whole_number import parse_whole

EOF = 0x40  # the offset field holds the number of connections this transfer used
EOD = 0x08  # no more data on this connection in this transfer
CLOSE = 0x04  # with EOD: the connection is closed afterwards instead of cached
UNDEFINED = 0x03  # nobody sets these bits

_HEADER = struct.Struct(">BQQ")  # descriptor, count, offset
HEADER_BYTES = _HEADER.size


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """A block header: `count` bytes follow, which belong at `offset`."""

    descriptor: int
    count: int
    offset: int

    def pack(self) -> bytes:
        """Return the 17 bytes of the wire."""
        return _HEADER.pack(self.descriptor, self.count, self.offset)

    def pack_into(self, buffer: memoryview) -> None:
        """Write the 17 bytes to the start of a buffer."""
        _HEADER.pack_into(buffer, 0, self.descriptor, self.count, self.offset)

    @property
    def ends_data(self) -> bool:
        """Whether this is the last block of its connection in this transfer."""
        return bool(self.descriptor & EOD)

    @property
    def total_streams(self) -> int | None:
        """How many connections the transfer used in all, if this block says so."""
        return self.offset if self.descriptor & EOF else None


def end_of_data(streams: int | None = None, *, close: bool = False) -> BlockHeader:
    """Return the header that ends one connection's part; with `streams` also the file, over so many."""
    descriptor = EOD | (CLOSE if close else 0)
    return BlockHeader(descriptor, 0, 0) if streams is None else BlockHeader(descriptor | EOF, 0, streams)


def unpack_header(data: bytes | bytearray | memoryview) -> BlockHeader:
    """Read 17 bytes. An EOF block carries no data, whatever its count says.

    Raises ValueError when CLOSE comes without EOD, or a count or offset is beyond any file: both mean
    that the stream is out of step.
    """
    descriptor, count, offset = _HEADER.unpack(data)
    if descriptor & EOF:
        count = 0
    if descriptor & CLOSE and not descriptor & EOD and not descriptor & EOF and count:
        raise ValueError("a MODE E block with data and CLOSE but without EOD")
    if count + offset >= 1 << 63:
        raise ValueError(f"a MODE E block out of range: {count} bytes at {offset}")
    return BlockHeader(descriptor, count, offset)


class ReceivedEnds:
    """Whether a transfer that is received is whole; EOF may come before, between or after the EODs.

    Not safe for several threads: its owner guards it.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._announced: int | None = None

    def end_of_data(self) -> None:
        """One connection has delivered all of its part."""
        self._seen += 1

    def end_of_file(self, streams: int) -> None:
        """The sender says how many connections it used in this transfer."""
        self._announced = streams

    @property
    def is_complete(self) -> bool:
        """Whether every connection that the sender used has ended."""
        return self._announced is not None and self._seen >= self._announced


# --- markers: replies that a server sends while a command is under way ------------------------------

_ARRIVED, _PASSED, _SUMMED = "Range Marker", "Stripe Bytes Transferred", "Bytes Processed"
LEAST_STEP_BYTES = 1 << 20  # less is done within any time-out
MOST_STEPS = 1000  # in which a large file is read


def restart_marker(ranges: Iterable[Range]) -> bytes:
    """Return a 111 reply: what arrived since the previous one."""
    return reply_line(111, f"{_ARRIVED} {format_ranges(ranges)}")


def range_marker(reply: Reply) -> list[Range]:
    """Read `111 Range Marker 0-100,...`: what arrived since the previous one. Raises ValueError."""
    return parse_ranges(reply.text.removeprefix(_ARRIVED).strip())


def performance_marker(now_s: float, moved_bytes: int) -> bytes:
    """Return a 112 marker: how many bytes this transfer has moved until `now_s` (seconds since 1970)."""
    return reply_line(
        112,
        "Perf Marker",
        f"Timestamp:  {now_s:.1f}",
        "Stripe Index: 0",
        f"{_PASSED}: {moved_bytes}",
        "Total Stripe Count: 1",
        "End.",
    )


def checksum_marker(now_s: float, done_bytes: int) -> bytes:
    """Return a 113 marker: how far a checksum has got."""
    return reply_line(113, "Status Marker", f"Timestamp: {now_s:.1f}", f"{_SUMMED}: {done_bytes}", "End.")


def marker_bytes(reply: Reply) -> int:
    """Return how far a marker says that its command has come, in bytes; 0 where it does not say.

    111: the end of its last range; 112: of the stripe it is about; 113: of a checksum.
    """
    with contextlib.suppress(ValueError):
        if reply.code == 111:
            return max(end for _, end in range_marker(reply))
        for line in reply.lines:
            name, _, value = line.partition(":")
            if name.strip() in (_PASSED, _SUMMED):
                return parse_whole(value.strip())
    return 0


class MarkerProgress:
    """How far a command that works on so many bytes has come by its markers.

    A marker costs nothing, and its number may be made up: only steps count that bring the end nearer, so that
    no command can be said to go on for ever.
    """

    def __init__(self, work_bytes: int) -> None:
        self._work_bytes = work_bytes
        self._step_bytes = max(LEAST_STEP_BYTES, work_bytes // MOST_STEPS)
        self._come_bytes = 0

    def is_made(self, marker: Reply) -> bool:
        """Tell whether a marker shows a step beyond those before."""
        come_bytes = min(marker_bytes(marker), self._work_bytes)
        if come_bytes < self._come_bytes + self._step_bytes:
            return False
        self._come_bytes = come_bytes
        return True
