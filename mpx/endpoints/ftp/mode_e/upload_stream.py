"""Uploads in MODE E, one connection: it sends block after block, in turn with others, and leaves."""

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Protocol

from mpx.endpoints.ftp.data_address import DataPort, unreachable
from mpx.endpoints.ftp.framing import BlockHeader
from mpx.endpoints.ftp.mode_e.store import Store
from mpx.engine.carrier import CarrierContext
from mpx.engine.source_stream import SourceStream
from mpx.engine.stream import BUFFER_BYTES, UNSENT_S, BlockSize, Stream
from mpx.errors import ConnectionLost, IntegrityError, MpxError, UsageError
from mpx.files.local_error import local_error
from mpx.net import congestion_control, pacing, tcp, tcp_info
from mpx.net.beyond_sockets import is_worn
from mpx.net.dial import Dial

DRAIN_TICK_S = 0.02
DRAIN_S = 30.0


class UploadChannel(Protocol):
    """What a connection needs of the passive port that it belongs to (upload_channel.py)."""

    port: DataPort
    block_bytes: int | None  # of each block; None: what a stream sends in about 100 ms
    context: CarrierContext
    congestions: Mapping[str, str | None]  # by path
    is_steered: bool
    broken: MpxError | None

    @property
    def is_closed(self) -> bool:
        """Whether the port is given up, so that nothing more is to be sent."""
        ...

    def transfer_at(self, index: int, stream: "UploadStream") -> Store | None:
        """Return the transfer number `index`, waiting for it; None when the port is closed."""
        ...

    def joined(self, stream: "UploadStream", transfer: Store) -> None:
        """Say that a stream is open: it takes part in this transfer and in those queued behind it."""
        ...

    def may_close(self, stream: "UploadStream", index: int) -> bool:
        """Tell whether a retired stream may close now, or is enrolled in a later transfer already."""
        ...

    def may_announce(self, index: int) -> bool:
        """Tell whether the end of a transfer may be announced by the last connection that leaves it."""
        ...

    def fail(self, error: MpxError, transfer: Store | None) -> None:
        """Say that a transfer cannot be completed, and so none of those queued behind it."""
        ...

    def broken_in(self, transfer: Store) -> MpxError | None:
        """Return why this transfer cannot be completed; one that stands before the broken one still may."""
        ...

    def was_refused(self, error: MpxError) -> None:
        """Say that a connection could not be opened."""
        ...

    def left(self, stream: "UploadStream") -> None:
        """Forget a stream that has ended, keeping its counters."""
        ...


class UploadStream(Stream):
    """One connection to a passive port; walks through the port's transfers in order."""

    def __init__(self, channel: UploadChannel, first: Store, path: str) -> None:
        super().__init__(
            "mpx-upload-stream",
            channel.context.supervisor.stream_ended if channel.context.streams.over_mptcp else None,
        )
        self.path = path
        # Written with the channel's lock held, but for `at`, which this thread owns; each read by itself.
        self.has_joined = False  # is open and counted
        self.leaving = False  # takes part in no later transfer
        self.at = first.number  # the transfer that it sends
        self.idle = False  # waits for the next transfer
        self._channel = channel
        self._control = channel.context.controls[path]
        self._first = first
        self._steer = channel.context.streams.paths.register(path, "source") if channel.is_steered else None
        self._steered_port = 0
        self._block = BlockSize(channel.block_bytes)
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def run(self) -> None:
        """Connect, then send until retired or the port is closed."""
        channel, transfer = self._channel, None
        try:
            if not self._join():
                return
            index = self._first.number
            while (transfer := channel.transfer_at(index, self)) is not None and self._send(transfer, index):
                self.at = index = index + 1
            self._drain()
        except MpxError as error:
            channel.fail(error, transfer)
        except OSError as error:
            lost = ConnectionLost(f"a data connection to {tcp.show(channel.port.address)} was lost: {error}")
            channel.fail(lost, transfer)
        except Exception as error:
            channel.fail(MpxError(f"unexpected: {type(error).__name__}: {error}"), transfer)
        finally:
            self.closed(clean=channel.broken is None)
            if self._steered_port:
                channel.context.streams.paths.ended(self._steered_port, "source")
            channel.left(self)

    def _drain(self) -> None:
        """Wait until the other side has everything, so that goodput counts it when it arrives."""
        until_s = time.monotonic() + DRAIN_S
        while not self._channel.is_closed and tcp_info.unacknowledged_bytes(self.connection):
            if self._channel.context.failure.cancel.wait(DRAIN_TICK_S) or time.monotonic() > until_s:
                return

    def _bound(self, number: int) -> None:
        self._steered_port = number
        if self._steer:
            self._steer(number)

    def _join(self) -> bool:
        channel, options = self._channel, self._channel.context.options
        transfer = self._first
        if channel.is_closed:
            transfer.ends.not_joined()
            return False
        congestion = channel.congestions[self.path]
        try:
            connection = channel.port.open(
                Dial(
                    timeout_s=options.connect_timeout_s,
                    source_ports=channel.context.streams.source_ports,
                    source_host=options.data_address,
                    congestion=congestion,
                    paced=True,
                    over_mptcp=channel.context.streams.over_mptcp,
                    bound=self._bound if self._steer else None,
                    stop=lambda: channel.is_closed,
                ),
                options.connect_timeout_s,
                lambda: channel.is_closed,
            )
            pacing.limit_unsent(connection, self._block.share_bytes(UNSENT_S))
        except BaseException as error:
            transfer.ends.not_joined()
            if isinstance(error, ConnectionLost):
                from_server = options.data_address_from_server or channel.port.dialer is not None
                error = unreachable(error, from_server=from_server)
            if isinstance(error, MpxError):
                channel.was_refused(error)
                return False
            raise
        self.opened(connection)
        now = channel.congestions[self.path]
        if now and now != congestion:  # switched while this one was connecting
            with contextlib.suppress(OSError, UsageError):
                congestion_control.set_congestion(connection, now)
        channel.joined(self, transfer)
        return True

    def _send(self, transfer: Store, index: int) -> bool:
        """Send this stream's share of one file; return whether the connection stays for the next."""
        finished = False
        while not self.retire and not finished:
            finished = not self._send_some(transfer)
            if broken := self._channel.broken_in(transfer):
                raise broken
            if self._channel.is_closed:
                raise ConnectionLost("session closed")
            self.retire = self.retire or is_worn(self.connection)
        finished = self._channel.may_announce(index) and (finished or transfer.is_taken)
        close = self._channel.may_close(self, index)
        self._write([transfer.ends.leave(finished=finished, close=close).pack()])
        return not close

    def _send_some(self, transfer: Store) -> bool:
        """Send the next block, if the gate lets one through; return whether more may be left."""
        if transfer.source is not None:
            return self._send_next(transfer, transfer.source)
        file, gate = transfer.file, self._control.gate
        allowed = gate.take(self._block.bytes)
        piece = file.take(allowed) if allowed else None
        if piece:
            gate.give_back(allowed - (piece[1] - piece[0]))
            self._send_block(transfer, *piece)
        elif allowed or not file.todo_bytes:
            gate.give_back(allowed)
            return False
        return True

    def _send_next(self, transfer: Store, source: SourceStream) -> bool:
        """Send what comes next of a file of unknown size; return whether there was anything."""
        limiter = self._control.limiter
        piece = source.read(self._buffer[: limiter.piece(len(self._buffer))])
        if piece is None:
            return False
        start, end = piece
        data = self._buffer[: end - start]
        limiter.wait(len(data))
        self._write([BlockHeader(0, end - start, start).pack(), data])
        self.passed_bytes += len(data)
        transfer.sent(len(data))
        return True

    def _send_block(self, transfer: Store, start: int, end: int) -> None:
        began = time.monotonic()
        limiter, view, file = self._control.limiter, self._buffer, transfer.file
        parts: list[bytes | memoryview] = [BlockHeader(0, end - start, start).pack()]
        position = start
        while position < end:
            try:
                got = os.preadv(
                    transfer.fd, [view[: min(end - position, limiter.piece(BUFFER_BYTES))]], position
                )
            except OSError as error:
                raise local_error(error, file.source, writing=False) from None
            if not got:
                raise IntegrityError(
                    f"{file.source} became shorter while it was copied; run the command again"
                )
            piece = view[:got]
            file.sums.passed(position, piece)
            limiter.wait(got)
            parts.append(piece)
            self._write(parts)
            parts = []
            position += got
            self.passed_bytes += got
        transfer.sent(end - start)
        before = self._block.bytes
        self._block.took(end - start, time.monotonic() - began)
        if self._block.bytes != before and self.connection is not None:
            pacing.limit_unsent(self.connection, self._block.share_bytes(UNSENT_S))

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
