"""One data connection of a session: connecting, receiving and sending in turns with its supervisor."""

import errno
import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from mpx.endpoints.ftp.wire import Address
from mpx.engine.stream import UNSENT_S, BlockSize
from mpx.errors import UsageError
from mpx.net import tcp
from mpx.net.congestion_control import congestion_of, set_congestion
from mpx.net.pacing import limit_unsent, pace
from mpx.net.tls import RECORD_BYTES, TlsSocket
from mpx.serve.buffers import Buffer
from mpx.serve.replies import DataChannelError

_TICK = struct.pack("ll", 0, 250_000)  # waiting receives and sends hand over what they have after 250 ms
_CONNECT_TICK_MS = 50


class ConnectionSource(Protocol):
    """Where a connection will come from that is not here yet."""

    missing: str  # says that none has come

    def wait(self, is_over: Callable[[], bool]) -> socket.socket | None:
        """Return one, once it is there; None where none comes in time, or once `is_over`."""
        ...


class Connection:
    """One data connection and its buffer. Blocking; `cancel` from another thread ends any wait."""

    def __init__(
        self,
        sock: socket.socket | ConnectionSource,
        block_bytes: int,
        on_close: Callable[[], None],
        address: Address | None = None,
    ) -> None:
        """`sock`: a connection, or where one will come from; `address`: to be connected to still."""
        self._awaited = None if isinstance(sock, socket.socket) else sock
        self._on_close = on_close
        self.block_bytes = block_bytes  # moved at once, at most
        self._block = BlockSize(None)
        self._unsent_bytes = 0  # that the kernel may hold; 0: as many as it likes
        self.ahead = b""  # what was received and belongs to the next transfer
        self._address = address  # still to be connected to
        self._lock = threading.Lock()  # between cancel and close
        self._cancelled = False
        self._congestion = ""  # that was asked for
        self._receives = False
        self._buffer: Buffer | None = None
        self.cached = False  # it has served an earlier transfer
        self.reusable = False  # it ended its part of this transfer and stays open
        self.closed = False
        if isinstance(sock, socket.socket):
            self._take(sock)

    def _take(self, sock: socket.socket) -> None:
        self._sock = sock
        if sock.family != socket.AF_UNIX:  # as it is through ssh
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TICK)

    @property
    def is_here(self) -> bool:
        """Whether there is a connection, not only the wait for one."""
        return self._awaited is None

    @property
    def as_socket(self) -> socket.socket:
        """The connection itself."""
        return self._sock

    @property
    def buffer(self) -> memoryview:
        """The memory this connection moves bytes through: room for one header and one block."""
        if self._buffer is None:
            self._buffer = Buffer(self.block_bytes)
        return self._buffer.view

    @property
    def next_bytes(self) -> int:
        """How many bytes are to be sent as one block: some 100 ms, as others of a transfer may be faster."""
        return min(self._block.bytes, self.block_bytes)

    def took(self, size_bytes: int, took_s: float) -> None:
        """Learn from a block that took `took_s` to send."""
        self._block.took(size_bytes, took_s)
        unsent_bytes = self._block.share_bytes(UNSENT_S)
        if unsent_bytes != self._unsent_bytes:  # what the kernel holds of one connection no other can send
            self._unsent_bytes = unsent_bytes
            with suppress(OSError):
                limit_unsent(self._sock, unsent_bytes)

    def use_congestion(self, name: str) -> None:
        """Switch to a congestion control that may be used; before it is connected or at any time after.

        A route to the client that locks another keeps that.
        """
        self._congestion = name
        if self.is_here:
            with suppress(UsageError, OSError):
                set_congestion(self._sock, name)

    def connect(self) -> None:
        """Connect, or wait until the client has, and pace, if that is still to be done.

        Raises DataChannelError, also when `cancel` comes first.
        """
        if self._awaited:
            self._await(self._awaited)
        if self._address:
            failed = self._try_to_connect(self._address)
            if failed and not self._cancelled:
                raise DataChannelError(f"cannot connect to {self._address}: {os.strerror(failed)}")
            self._address = None
            if self._congestion and congestion_of(self._sock) != self._congestion:
                self.use_congestion(self._congestion)  # the route's own has taken its place
        if not self.cached:  # else it may be slowed for a moment just now (pacing_requests.py)
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TICK)
            pace(self._sock)
        if self._cancelled:
            raise DataChannelError("cancelled")

    def _await(self, arrivals: ConnectionSource) -> None:
        sock = arrivals.wait(lambda: self._cancelled)
        if sock is None:
            raise DataChannelError("cancelled" if self._cancelled else arrivals.missing)
        with self._lock:
            if self.closed:
                sock.close()
                raise DataChannelError("cancelled")
            self._take(sock)
            self._awaited = None
        if self._congestion:
            self.use_congestion(self._congestion)

    def _try_to_connect(self, address: Address) -> int:
        """Return the error number, 0 for none. A blocking connect would not hear of a `cancel` before it."""
        self._sock.setblocking(False)
        try:
            failed = self._sock.connect_ex(address)
            poll = select.poll()
            poll.register(self._sock, select.POLLOUT)
            while failed == errno.EINPROGRESS and not self._cancelled:
                if poll.poll(_CONNECT_TICK_MS):
                    failed = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            return failed
        finally:
            self._sock.setblocking(True)

    def receive(self, view: memoryview, *, fill: bool = True) -> int:
        """Fill `view`, or as much of it as arrives within a tick; return 0 at the end of the stream.

        Without `fill` return as soon as there is anything. Raises DataChannelError when the connection
        breaks.
        """
        self._receives = True
        while True:
            try:
                return self._sock.recv_into(view, 0, socket.MSG_WAITALL if fill else 0)
            except BlockingIOError:
                self._wait(select.POLLIN)  # the transfer's supervisor judges stalls
            except OSError as error:
                raise DataChannelError(f"data connection lost: {error}") from error

    def send(self, view: memoryview) -> int:
        """Send `view`, or as much of it as leaves within a tick; return how much that was."""
        while True:
            try:
                return self._sock.send(view)
            except BlockingIOError:
                self._wait(select.POLLOUT)
            except OSError as error:
                raise DataChannelError(f"data connection lost: {error}") from error

    def _wait(self, event: int) -> None:
        """Wait until the connection can go on, or `cancel`; who wakes up for nothing costs others."""
        poll = select.poll()
        poll.register(self._sock, event)
        poll.poll()

    def go_on(self) -> None:
        """Be ready for the next transfer."""
        self.cached = True
        self.reusable = False

    def rest(self) -> None:
        """Keep open what the next transfer may use, with little memory."""
        self.go_on()
        if self._buffer:
            self._buffer.shrink()

    def is_alive(self) -> bool:
        """Tell whether the other side still holds an idle connection open."""
        try:
            if isinstance(self._sock, TlsSocket) and not self.ahead:  # what is to be read tells, not that
                self.ahead = self._sock.recv(RECORD_BYTES, socket.MSG_DONTWAIT)
                return bool(self.ahead)
            return bool(self.ahead) or self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def finish_sending(self) -> None:
        """Tell the other side that nothing more comes (MODE S: the end of the file)."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def cancel(self, *, resets: bool = False) -> None:
        """End what another thread does on this connection.

        `resets`: for both sides, once it is closed, where it is received over it. Linux tells a sender that
        waits for a window nothing for minutes otherwise, where what came before was read after the cancel.
        """
        self._cancelled = True
        with self._lock, suppress(OSError):
            if self.closed or not self.is_here:
                return
            if resets and self._receives:  # else it would lose what is on its way to the client
                tcp.reset(self._sock)
            else:
                self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; nobody uses it any more but for `cancel`."""
        with self._lock:
            if self.closed:
                return
            if self.is_here:
                self._sock.close()
            if self._buffer:
                self._buffer.release()
            self.closed = True
        self._on_close()
