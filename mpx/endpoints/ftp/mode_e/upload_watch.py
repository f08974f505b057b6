"""Uploads in MODE E: noticing that nothing moves, or that one stream hangs while the others do."""

import time
from collections import deque

from mpx.endpoints.ftp.framing import range_marker
from mpx.endpoints.ftp.mode_e.store import Store
from mpx.endpoints.ftp.mode_e.upload_channel import UploadDataChannel
from mpx.endpoints.ftp.wire import Reply
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import ConnectionLost, TransferTimeout
from mpx.net import tcp

TICK_S = 0.1
STALL_S = 5.0  # a silent stream is given up after this, or 20 RTT, if all else has been sent, ...
PATIENCE = 3.0  # ... else after that many times as long, as losses alone can silence one for six seconds, ...
STALL_BYTES = 1 << 20  # ... and so much by the others: a server may read few at a time
PASSED_EVERY_S = 1.0  # that is noted
LEAST_MARKED_BYTES = 64 * 1024  # by restart markers, for a sign of life: they are only claims


class UploadWatch:
    """Watches one transfer after the other; `look` is to be called again and again."""

    def __init__(self, timeout_s: float, rtt_s: float) -> None:
        self._timeout_s = timeout_s
        self._stream_s = min(timeout_s, max(STALL_S, 20 * rtt_s))
        self._heard_s = time.monotonic()
        self._looked_s = self._heard_s  # a short file has ended before the first look
        self._passed: deque[tuple[float, int]] = deque()  # when, bytes of all streams
        self._marked_bytes = 0  # since the last sign of life

    def heard(self) -> None:
        """Note a sign of life from the server."""
        self._heard_s = time.monotonic()

    def marked(self, new_bytes: int) -> None:
        """Note how many bytes a restart marker reports as new."""
        self._marked_bytes += new_bytes
        if self._marked_bytes >= LEAST_MARKED_BYTES:
            self._marked_bytes = 0
            self.heard()

    def look(self, channel: UploadDataChannel, transfer: Store) -> None:
        """Raise TransferTimeout if nothing moves; break the transfer if a single stream hangs.

        However often it is called, it looks ten times a second.
        """
        if time.monotonic() < self._looked_s + TICK_S:
            return
        self._looked_s = time.monotonic()
        streams = [stream for stream in channel.live_streams() if stream.connection is not None]
        waiting = [(idle_s, stream) for stream in streams if (idle_s := stream.unanswered_s()) is not None]
        idle = [idle_s for idle_s, _ in waiting]
        # What has run ahead to a later file is not read before this one has ended.
        here = max((idle_s for idle_s, stream in waiting if stream.at <= transfer.number), default=0.0)
        now = time.monotonic()
        self._note_passed(channel, now)
        if idle and min(idle) < self._timeout_s:
            others_move = min(idle) < 1.0 and self._passed_since(now - here) >= STALL_BYTES
            limit_s = self._stream_s
            if transfer.file.todo_bytes:
                limit_s = min(self._timeout_s, PATIENCE * limit_s)
            if here > limit_s and (others_move or not transfer.file.todo_bytes):
                where = tcp.show(channel.port.address)
                what = f"no progress on a data connection to {where} for {limit_s:g} s"
                channel.fail(ConnectionLost(what), transfer)
                for stream in channel.live_streams():
                    stream.cut()
            if min(idle) < 1.0:
                self._heard_s = now
        if not idle and transfer.source is not None and transfer.source.is_waiting:
            self._heard_s = now  # the server has all that there is: it is not the one that is slow
        if now - self._heard_s > self._timeout_s:
            raise TransferTimeout(
                f"no data accepted for {self._timeout_s:g} s (--timeout) while storing {transfer.file.final} "
                f"at {tcp.show(channel.port.address)}"
            )

    def _note_passed(self, channel: UploadDataChannel, now_s: float) -> None:
        """Note once a second what all streams have passed: it is asked of the kernel, stream by stream."""
        if not self._passed or now_s >= self._passed[-1][0] + PASSED_EVERY_S:
            self._passed.append((now_s, sum(each.bytes for each in channel.totals().values())))
        while self._passed[0][0] < now_s - self._timeout_s - PASSED_EVERY_S:
            self._passed.popleft()

    def _passed_since(self, since_s: float) -> int:
        """Return what all streams have passed since then, as far as it was noted."""
        before = [passed for at_s, passed in self._passed if at_s <= since_s]
        return self._passed[-1][1] - (before[-1] if before else self._passed[0][1])


def marked(file: FileTransfer, reply: Reply, certain_from: int) -> int:
    """Record what a restart marker says, from an offset on; return how many bytes are new.

    Raises ConnectionLost.
    """
    try:
        return sum(
            file.landed(max(start, certain_from), min(end, file.size_bytes))
            for start, end in range_marker(reply)
            if start < file.size_bytes and end > certain_from
        )
    except ValueError as error:
        raise ConnectionLost(f"the server sends a broken restart marker: {error}") from None
