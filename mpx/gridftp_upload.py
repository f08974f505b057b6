"""Uploads in MODE E, the streams: connections to one passive port of a server.

The sender connects, so streams come and go at will inside one STOR: a new one joins on the port that
PASV gave, an old one leaves at a block edge with EOD. Streams take block after block from the file, so
a fast one carries more and a slow one never holds more than its block. Connections outlive a file:
after EOD without CLOSE the next STOR uses them again.
"""

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mpx import tcp
from mpx.carrier import Work
from mpx.checksum import adler32
from mpx.end_of_data import EndOfData
from mpx.errors import ConnectionLost, IntegrityError, MpxError, UsageError
from mpx.gridftp_wire import BlockHeader
from mpx.local import local_error
from mpx.move import Move
from mpx.passive import unreachable
from mpx.stream import BUFFER_BYTES, BlockSize, Stream, StreamTotals

UNSENT_S = (
    0.05  # the kernel may hold so much unsent; more would delay leaving, less would let a fast one starve
)
DRAIN_TICK_S = 0.02
DRAIN_S = 30.0
LEAVE_S = 1.0
BYTES_PER_STREAM = 256 * 1024  # a file shorter than this needs no second stream
REJOIN_S = 1.0  # after a connection was refused, wait so long before the next is tried


class Transfer:
    """One STOR or ESTO on its way."""

    def __init__(self, move: Move, fd: int) -> None:
        self.move = move
        self.fd = fd
        self.number = 0  # in its DataPort
        self.ends = EndOfData()
        self._before_bytes = move.arrived_bytes
        self._sent_bytes = 0
        self._counting = threading.Lock()

    def sent(self, size_bytes: int) -> None:
        """Count a block that was sent whole."""
        with self._counting:
            self._sent_bytes += size_bytes

    @property
    def is_complete(self) -> bool:
        """Whether what was sent, with what had arrived before, is the whole file."""
        with self._counting:
            return self._before_bytes + self._sent_bytes >= self.move.size_bytes


class DataPort:
    """A passive port of the server and our connections to it, for one transfer after the other."""

    def __init__(self, address: tcp.Address, work: Work, congestion: str | None) -> None:
        self.address = address
        self.work = work
        self.congestion = congestion
        self.is_steered = work.paths.lead_to(address[0])
        self.broken: MpxError | None = None  # why a transfer, and those behind it, cannot be completed
        self.refused: MpxError | None = None  # why the latest connection could not be opened
        self.refusals = 0
        self._changed = threading.Condition()
        self._transfers: dict[int, Transfer] = {}
        self._added = 0
        self._streams: list[UploadStream] = []
        self._ended: dict[str, StreamTotals] = {}  # by path
        self._closed = False
        self._broken_at = 0  # the transfer that `broken` is about
        self._rejoin_s = 0.0

    # --- for the lane --------------------------------------------------------------------------------

    def add(self, transfer: Transfer) -> None:
        """Queue a transfer, before its STOR is sent; every open connection takes part in it.

        One that is being opened enrolls itself once it is (`joined`): it may still fail to.
        """
        with self._changed:
            for stream in self._streams:
                if stream.has_joined and not stream.leaving:
                    transfer.ends.enroll()
            transfer.number = self._added
            self._transfers[self._added] = transfer
            self._added += 1
            self._changed.notify_all()

    def forget(self, transfer: Transfer) -> None:
        """Let go of a transfer that the server has completed, so that every stream is past it."""
        with self._changed:
            del self._transfers[transfer.number]

    def adjust(self, transfer: Transfer, target: Sequence[str]) -> None:
        """Open or retire connections so that the running transfer has one for each of the paths in `target`.

        Never more than it, or one queued behind it, has use for, and always one until its end was announced;
        the first of `target` are opened first.
        """
        ends = transfer.ends
        with self._changed:
            largest_todo = max(queued.move.todo_bytes for queued in self._transfers.values())
            useful = max(1, min(len(target), -(-largest_todo // BYTES_PER_STREAM)))
            wanted, live = Counter(target), Counter[str]()
            for stream in self._streams:
                if not stream.leaving and not stream.retire:
                    live[stream.path] += 1
                    stream.retire = live[stream.path] > wanted[stream.path]
            if self._closed or self.broken or time.monotonic() < self._rejoin_s:
                return
            missing: list[str] = []
            if largest_todo:
                for path in target[:useful]:
                    live[path] -= 1
                    if live[path] < 0:
                        missing.append(path)
            # One is needed for the end, even where all have gone on to what is queued behind.
            if not missing and not ends.taking_part:
                missing.append(target[0])
            for path in missing:
                if not ends.reserve():
                    return
                stream = UploadStream(self, transfer, path)
                self._streams.append(stream)
                try:
                    stream.start()
                except RuntimeError:  # no more threads: go on with those that there are
                    self._streams.remove(stream)
                    ends.not_joined()
                    self._rejoin_s = time.monotonic() + REJOIN_S
                    return

    def renew(self) -> None:
        """Retire every connection at its next block edge; `adjust` opens others."""
        with self._changed:
            for stream in self._streams:
                stream.retire = True

    def live_streams(self) -> "list[UploadStream]":
        """Return the connections that are open or being opened."""
        with self._changed:
            return list(self._streams)

    def totals(self) -> dict[str, StreamTotals]:
        """Return the counters of all connections that there are and were, by path.

        Those that leave count no more as open.
        """
        with self._changed:
            sums = {path: replace(ended) for path, ended in self._ended.items()}
            for stream in self._streams:
                told = stream.totals().none_open() if stream.leaving else stream.totals()
                sums.setdefault(stream.path, StreamTotals()).add(told)
        return sums

    def close(self) -> None:
        """Let idle connections go, without a reset."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def leave(self) -> None:
        """Close, and wait until every connection has told what it was: soon, as none has anything to send.

        A controller that is asked for a path just then may keep one; that is not waited for.
        """
        self.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._streams, LEAVE_S)

    def cut(self) -> None:
        """Reset every connection and wait until their threads have ended."""
        self.close()
        streams = self.live_streams()
        for stream in streams:
            stream.cut()
        for stream in streams:
            while stream.is_alive():
                stream.cut()  # it may have been connecting at the first try
                stream.join(0.05)

    # --- for the streams -----------------------------------------------------------------------------

    def transfer_at(self, index: int, stream: "UploadStream") -> Transfer | None:
        """Return the transfer number `index`, waiting for it; None when the port is closed."""
        with self._changed:
            stream.idle = True
            while self._added <= index and not self._closed:
                self._changed.wait()
            stream.idle = False
            return None if self._closed else self._transfers[index]

    def joined(self, stream: "UploadStream", transfer: Transfer) -> None:
        """Say that a stream is open: it takes part in this transfer and in those queued behind it."""
        with self._changed:
            stream.has_joined = True
            self.refusals = 0
            for later in range(transfer.number + 1, self._added):
                self._transfers[later].ends.enroll()
            transfer.ends.joined()

    def may_close(self, stream: "UploadStream", index: int) -> bool:
        """Tell whether a retired stream may close now, or is enrolled in a later transfer already."""
        with self._changed:
            stream.leaving = stream.retire and self._added == index + 1
            return stream.leaving

    def may_announce(self, index: int) -> bool:
        """Tell whether the end of a transfer may be announced by the last connection that leaves it.

        Not before the end of the one before was: whoever still joins that takes part in this one too.
        """
        with self._changed:
            before = self._transfers.get(index - 1)
            return before is None or before.ends.announced

    @property
    def is_deserted(self) -> bool:
        """Whether it was used and no connection is left for a further transfer."""
        with self._changed:
            return self._added > 0 and all(stream.leaving for stream in self._streams)

    @property
    def is_closed(self) -> bool:
        """Whether the port is given up, so that nothing more is to be sent."""
        return self._closed

    def fail(self, error: MpxError, transfer: Transfer | None) -> None:
        """Say that a transfer cannot be completed, and so none of those queued behind it."""
        with self._changed:
            if self.broken is None:
                self.broken = error
                self._broken_at = transfer.number if transfer else 0

    def broken_in(self, transfer: Transfer) -> MpxError | None:
        """Return why this transfer cannot be completed; one that stands before the broken one still may."""
        with self._changed:
            if self.broken is None or self._broken_at > transfer.number:
                return None
            if self._broken_at == transfer.number or self.broken.may_retry:
                return self.broken
            return ConnectionLost(f"the transfer before it failed: {self.broken}")

    def was_refused(self, error: MpxError) -> None:
        """Say that a connection could not be opened."""
        with self._changed:
            self.refused = error
            self.refusals += 1
            if isinstance(error, UsageError):  # no port to come from: we do with the streams that there are
                self.work.note(f"no further stream: {error}")
            self._rejoin_s = time.monotonic() + REJOIN_S

    def left(self, stream: "UploadStream") -> None:
        """Forget a stream that has ended, keeping its counters."""
        totals = stream.totals()
        with self._changed:
            self._streams.remove(stream)
            self._ended.setdefault(stream.path, StreamTotals()).add(totals)
            self._changed.notify_all()


class UploadStream(Stream):
    """One connection to a DataPort; walks through the port's transfers in order."""

    def __init__(self, port: DataPort, first: Transfer, path: str) -> None:
        super().__init__("mpx-upload-stream", port.work.subflows if port.work.over_mptcp else None)
        self.path = path
        self.has_joined = False  # is open and counted
        self.leaving = False  # takes part in no later transfer
        self.at = first.number  # the transfer that it sends
        self.idle = False  # waits for the next transfer
        self._port = port
        self._first = first
        self._steer = port.work.paths.register(path, "source") if port.is_steered else None
        self._steered_port = 0
        self._block = BlockSize(port.work.options.block_size_bytes)
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def run(self) -> None:
        """Connect, then send until retired or the port is closed."""
        port, transfer = self._port, None
        try:
            if not self._join():
                return
            index = self._first.number
            while (transfer := port.transfer_at(index, self)) is not None and self._send(transfer, index):
                self.at = index = index + 1
            self._drain()
        except MpxError as error:
            port.fail(error, transfer)
        except OSError as error:
            lost = ConnectionLost(f"a data connection to {tcp.show(port.address)} was lost: {error}")
            port.fail(lost, transfer)
        except Exception as error:
            port.fail(MpxError(f"unexpected: {type(error).__name__}: {error}"), transfer)
        finally:
            self.closed(clean=port.broken is None)
            if self._steered_port:
                port.work.paths.ended(self._steered_port, "source")
            port.left(self)

    def _drain(self) -> None:
        """Wait until the other side has everything, so that goodput counts it when it arrives."""
        until_s = time.monotonic() + DRAIN_S
        while not self._port.is_closed and tcp.unacknowledged_bytes(self.connection):
            if self._port.work.failure.cancel.wait(DRAIN_TICK_S) or time.monotonic() > until_s:
                return

    def _bound(self, number: int) -> None:
        self._steered_port = number
        if self._steer:
            self._steer(number)

    def _join(self) -> bool:
        port, options = self._port, self._port.work.options
        transfer = self._first
        if port.is_closed:
            transfer.ends.not_joined()
            return False
        congestion = port.congestion
        try:
            connection = tcp.connect(
                port.address,
                options.connect_timeout_s,
                source_ports=port.work.source_ports,
                source_host=options.data_address,
                congestion=congestion,
                paced=True,
                over_mptcp=port.work.over_mptcp,
                bound=self._bound if self._steer else None,
                stop=lambda: port.is_closed,
            )
            tcp.limit_unsent(connection, self._block.share_bytes(UNSENT_S))
        except BaseException as error:
            transfer.ends.not_joined()
            if isinstance(error, ConnectionLost):
                error = unreachable(error, from_server=options.data_address_from_server)
            if isinstance(error, MpxError):
                port.was_refused(error)
                return False
            raise
        self.opened(connection)
        if port.congestion and port.congestion != congestion:  # switched while this one was connecting
            with contextlib.suppress(OSError, UsageError):
                tcp.set_congestion(connection, port.congestion)
        port.joined(self, transfer)
        return True

    def _send(self, transfer: Transfer, index: int) -> bool:
        """Send this stream's share of one file; return whether the connection stays for the next."""
        move, gate = transfer.move, self._port.work.gate
        finished = False
        while not self.retire and not finished:
            allowed = gate.take(self._block.bytes)
            piece = move.take(allowed) if allowed else None
            if piece:
                gate.give_back(allowed - (piece[1] - piece[0]))
                self._send_block(transfer, *piece)
            elif allowed or not move.todo_bytes:
                gate.give_back(allowed)
                finished = True
            if broken := self._port.broken_in(transfer):
                raise broken
            if self._port.is_closed:
                raise ConnectionLost("the session was given up")
        finished = self._port.may_announce(index) and (finished or not move.todo_bytes)
        close = self._port.may_close(self, index)
        self._write([transfer.ends.leave(finished=finished, close=close).pack()])
        return not close

    def _send_block(self, transfer: Transfer, start: int, end: int) -> None:
        began = time.monotonic()
        pacer, view, value = self._port.work.pacer, self._buffer, 1
        summing = transfer.move.is_summed
        parts: list[bytes | memoryview] = [BlockHeader(0, end - start, start).pack()]
        position = start
        while position < end:
            try:
                got = os.preadv(
                    transfer.fd, [view[: min(end - position, pacer.piece(BUFFER_BYTES))]], position
                )
            except OSError as error:
                raise local_error(error, transfer.move.source, writing=False) from None
            if not got:
                raise IntegrityError(
                    f"{transfer.move.source} became shorter while it was copied; run the command again"
                )
            piece = view[:got]
            if summing:
                value = adler32(piece, value)
            pacer.wait(got)
            parts.append(piece)
            self._write(parts)
            parts = []
            position += got
            self.passed_bytes += got
        if summing:
            transfer.move.summed(start, end, value)
        transfer.sent(end - start)
        before = self._block.bytes
        self._block.took(end - start, time.monotonic() - began)
        if self._block.bytes != before and self.connection is not None:
            tcp.limit_unsent(self.connection, self._block.share_bytes(UNSENT_S))

    def _write(self, parts: list[bytes | memoryview]) -> None:
        """Send all of it; raises OSError when the connection is cut."""
        connection = self.connection
        assert connection is not None
        self.offered_bytes += sum(map(len, parts))
        sent = connection.sendmsg(parts)
        for part in parts:
            if sent >= len(part):
                sent -= len(part)
            else:
                connection.sendall(memoryview(part)[sent:])
                sent = 0
