"""Data connections: where they come from, and the ones kept open between transfers.

In MODE E the sender connects: we accept (PASV) what is stored and connect (PORT) to send. After a
transfer such connections stay open and the next one in the same direction uses them again, until a
new PASV or PORT. In MODE S a connection serves one transfer, in either direction.
"""

import errno
import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from mpx.endpoints.ftp.wire import Address
from mpx.engine.stream import UNSENT_S, BlockSize
from mpx.errors import UsageError
from mpx.net.congestion_control import congestion_of, set_congestion
from mpx.net.mptcp import socket_for
from mpx.net.pacing import limit_unsent, pace
from mpx.serve.buffers import Buffer, ConnectionBudget
from mpx.serve.replies import DataChannelError, RefusalReply

MOST_CONNECTIONS = 256  # of one session at a time
_TICK = struct.pack("ll", 0, 250_000)  # waiting receives and sends hand over what they have after 250 ms
_CONNECT_TICK_MS = 50
_BACKLOG = 256
_IP_BIND_ADDRESS_NO_PORT = 24  # linux/in.h: the port is chosen at connect(), so that ports do not run out


class Connection:
    """One data connection and its buffer. Blocking; `cancel` from another thread ends any wait."""

    def __init__(
        self,
        sock: socket.socket,
        block_bytes: int,
        on_close: Callable[[], None],
        address: Address | None = None,
    ) -> None:
        self._sock = sock
        self._on_close = on_close
        self.block_bytes = block_bytes  # moved at once, at most
        self._block = BlockSize(None)
        self._unsent_bytes = 0  # that the kernel may hold; 0: as many as it likes
        self.ahead = b""  # what was received and belongs to the next transfer
        self._address = address  # still to be connected to
        self._lock = threading.Lock()  # between cancel and close
        self._cancelled = False
        self._congestion = ""  # that was asked for
        self._buffer: Buffer | None = None
        self.cached = False  # it has served an earlier transfer
        self.reusable = False  # it ended its part of this transfer and stays open
        self.closed = False
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TICK)

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
        with suppress(UsageError):
            set_congestion(self._sock, name)

    def connect(self) -> None:
        """Connect and pace, if that is still to be done.

        Raises DataChannelError, also when `cancel` comes first.
        """
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

    def rest(self) -> None:
        """Keep open what the next transfer may use, with little memory."""
        self.cached = True
        self.reusable = False
        if self._buffer:
            self._buffer.shrink()

    def is_alive(self) -> bool:
        """Tell whether the other side still holds an idle connection open."""
        try:
            return bool(self.ahead) or self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def finish_sending(self) -> None:
        """Tell the other side that nothing more comes (MODE S: the end of the file)."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def cancel(self) -> None:
        """End what another thread does on this connection."""
        self._cancelled = True
        with self._lock, suppress(OSError):
            if not self.closed:
                self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; nobody uses it any more but for `cancel`."""
        with self._lock:
            if self.closed:
                return
            self._sock.close()
            if self._buffer:
                self._buffer.release()
            self.closed = True
        self._on_close()


class DataChannel:
    """The data side of one session: its listener or the client's address, and connections kept open."""

    def __init__(self, local: str, peer: str, family: socket.AddressFamily, budget: ConnectionBudget) -> None:
        self._budget = budget
        self._local = local
        self._peer = peer
        self._family = family
        self._target: Address | None = None
        self._kept: list[Connection] = []
        self._outgoing: list[Connection] = []  # replaced, never changed: others read it
        self.listener: socket.socket | None = None
        self.buffer_bytes = 0  # SBUF; 0 leaves the size to the kernel, which adapts it

    def listen(self) -> Address:
        """Open a new listener (PASV) and return where; what was open before is closed."""
        self.close()
        listener = socket_for(self._family)
        try:
            self._set_buffer(listener, socket.SO_RCVBUF)
            self._set_buffer(listener, socket.SO_SNDBUF)
            listener.bind((self._local, 0))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        self.listener = listener
        host, port, *_ = listener.getsockname()
        return host, port

    def connect_to(self, address: Address) -> None:
        """Connect to `address` for the next transfers (PORT); what was open before is closed.

        Raises RefusalReply unless it is a port of the client itself: data goes nowhere else.
        """
        host, port = address
        if host != self._peer:
            raise RefusalReply(501, f"Data goes only to your own address, {self._peer}.")
        if port < 1024:
            raise RefusalReply(501, "Data does not go to ports below 1024.")
        self.close()
        self._target = address

    def wait_to_join(self) -> None:
        """Wait, as who has many connections in a transfer does for one more."""
        self._budget.wait_to_join()

    def accept(self) -> Connection | None:
        """Take a waiting connection; None where there is none, or none that may be used (it is closed)."""
        if not self.listener:
            return None
        try:
            sock, address = self.listener.accept()
        except OSError:  # it has gone already, or no descriptors are left: then it waits
            return None
        if address[0] == self._peer and (block_bytes := self._budget.take(self._peer)):
            try:
                return Connection(sock, block_bytes, self._give_back)
            except OSError:  # it has gone already
                self._give_back()
        sock.close()
        return None

    def check(self, *, blocks: bool, sending: bool) -> None:
        """Raise RefusalReply when neither PASV nor PORT said where data goes, or the wrong one for MODE E."""
        if not self.listener and not self._target:
            raise RefusalReply(425, "Use PASV or PORT first.")
        if blocks and sending != self.connects:
            raise RefusalReply(
                500, f"In MODE E the sender connects: use {'PORT' if sending else 'PASV'} first."
            )

    def take_kept(self) -> list[Connection]:
        """Hand out the connections an earlier transfer left open, as far as they are still alive."""
        alive = []
        for connection in self._kept:
            if connection.is_alive():
                alive.append(connection)
            else:
                connection.close()
        self._kept = []
        return alive

    def outgoing(self, count: int, *, over_mptcp: bool = False) -> list[Connection]:
        """Make `count` connections to the client's address, yet to be connected; fewer if it has too many.

        Raises RefusalReply if there may be none.
        """
        assert self._target
        made: list[Connection] = []
        for _ in range(count):
            block_bytes = self._budget.take(self._peer)
            if not block_bytes:
                break
            try:
                sock = self._socket(over_mptcp)
            except OSError:
                self._give_back()
                for connection in made:
                    connection.close()
                raise
            made.append(Connection(sock, block_bytes, self._give_back, self._target))
        if not made:
            raise RefusalReply(425, f"Too many data connections of {self._peer} are open.")
        self._outgoing = [*(each for each in self._outgoing if not each.closed), *made]
        return made

    def _socket(self, over_mptcp: bool) -> socket.socket:
        kind = socket.SOCK_STREAM
        sock = socket_for(self._family) if over_mptcp else socket.socket(self._family, kind)
        try:
            self._set_buffer(sock, socket.SO_RCVBUF)
            self._set_buffer(sock, socket.SO_SNDBUF)
            with suppress(OSError):  # older kernels have it for plain TCP only
                sock.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
            sock.bind((self._local, 0))
        except OSError:
            sock.close()
            raise
        return sock

    def sending(self) -> list[socket.socket]:
        """Return those that we have connected, to send over, and that are open; from any thread."""
        return [connection.as_socket for connection in self._outgoing if not connection.closed]

    @property
    def connects(self) -> bool:
        """Whether we connect to the client (PORT) rather than it to us (PASV)."""
        return self._target is not None

    def keep(self, connections: list[Connection]) -> None:
        """Leave these open for the next transfer, and no others: one in MODE S takes none of those before."""
        for connection in self._kept:
            connection.close()
        for connection in connections:
            connection.rest()
        self._kept = connections

    def close(self) -> None:
        """Close the listener and what was kept open; forget the address."""
        if self.listener:
            self.listener.close()
            self.listener = None
        for connection in self._kept:
            connection.close()
        self._kept = []
        self._target = None

    def _give_back(self) -> None:
        self._budget.give_back(self._peer)

    def _set_buffer(self, sock: socket.socket, option: int) -> None:
        if self.buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, option, self.buffer_bytes)
