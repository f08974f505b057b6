"""One connection through the proxy: the socket that was accepted, the one opened for it, two pipes.

The handshake is emulated, since the kernel accepts at once: the connection to the other side is
opened one one-way delay after the accept, bytes of whoever connected are taken from one RTT after
it (when a distant `connect` would have returned) and bytes of the other side from one and a half
(when a distant `accept` would have). So nothing at all is forwarded during the first RTT.

A half-close follows the bytes before it. A reset does not wait: it is passed on at once, and what
was under way is lost, as in a peer that throws its connection away.
"""

import contextlib
import errno
import socket
import struct
import time
from collections.abc import Callable, Mapping
from functools import partial

from mpx_lab.proxy.loop import BOTH_ENDED, FAILED, READABLE, WRITABLE, Loop
from mpx_lab.proxy.path import SOCKET_BUFFER_BYTES, Path
from mpx_lab.proxy.pipe import Pipe
from mpx_lab.proxy.record import ConnectionRecord, Direction
from mpx_lab.proxy.rewrite import Address, LineRewriter

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def new_socket(host: str, receive_bytes: int) -> socket.socket:
    """Return a socket for connections through the proxy; `host` chooses IPv4 or IPv6."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
    return sock


class SocketEnd:
    """One of the two sockets; it asks epoll for no more than its pipes want."""

    def __init__(self, loop: Loop, outgoing: Pipe, incoming: Pipe, on_failure: Callable[[], None]) -> None:
        self.sock: socket.socket | None = None  # None until the connection is opened
        self._loop = loop
        self._outgoing, self._incoming = outgoing, incoming
        self._on_failure = on_failure
        self._events = 0
        self._watched = False

    def attach(self, sock: socket.socket) -> None:
        """Use this socket from now on; it may still be connecting."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.watch()

    def watch(self) -> None:
        """Tell epoll what is wanted."""
        if self.sock is None:
            return
        if self._watched:
            self._loop.change(self.sock, self._events)
        else:
            self._loop.watch(self.sock, self._events, self._on_events)
            self._watched = True

    def unwatch(self) -> None:
        """Stop watching, also for resets."""
        if self._watched and self.sock is not None:
            self._loop.unwatch(self.sock)
        self._watched = False

    def close(self, reset: bool) -> None:
        """Close the socket, with a reset if `reset`."""
        if self.sock is not None:
            if reset:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._loop.close(self.sock)

    def want(self, event: int, wanted: bool) -> None:
        """See pipe.PipeEnd."""
        events = self._events | event if wanted else self._events & ~event
        if events != self._events:
            self._events = events
            self.watch()

    def receive_into(self, buffer: memoryview, size_bytes: int) -> int:
        """See pipe.PipeEnd."""
        if self.sock is None:
            raise BlockingIOError
        return self.sock.recv_into(buffer, size_bytes)

    def send(self, data: memoryview) -> int:
        """See pipe.PipeEnd."""
        if self.sock is None:
            raise BlockingIOError
        return self.sock.send(data)

    def end_writing(self) -> None:
        """See pipe.PipeEnd."""
        if self.sock is not None:
            with contextlib.suppress(OSError):  # already reset: epoll reports that by itself
                self.sock.shutdown(socket.SHUT_WR)

    def _on_events(self, events: int) -> None:
        if events & FAILED:
            self._on_failure()
            return
        if events & WRITABLE:
            self._incoming.deliver()
        if events & READABLE:
            self._outgoing.read()
        elif events & BOTH_ENDED:
            self.unwatch()  # else epoll would report it for ever; a pipe that wants to read watches anew


class Relay:
    """A control or data connection; `log.number` names it. Nothing happens before the first `resume`."""

    def __init__(
        self,
        path: Path,
        log: ConnectionRecord,
        accepted: socket.socket,
        dial: Address,
        rewriters: Mapping[Direction, LineRewriter],
        on_closed: "Callable[[Relay], None]",
    ) -> None:
        self.log = log
        self._path = path
        self._dial_address = dial
        self._on_closed = on_closed
        self._paused = False
        options, now_s = path.options, time.monotonic()
        self._dial_s = now_s + options.one_way_s

        def pipe(direction: Direction, opens_s: float) -> Pipe:
            return Pipe(
                path.loop,
                options,
                path.lines(log.kind, direction),
                opens_s,
                on_delivered=partial(path.delivered, log, direction),
                on_end=self._end_if_done,
                on_failure=self.reset,
                rewriter=rewriters.get(direction),
            )

        outward: Direction = "up" if log.opened_by == "client" else "down"
        out = pipe(outward, now_s + options.rtt_s)
        back = pipe("down" if outward == "up" else "up", now_s + options.rtt_s + options.one_way_s)
        self._pipes = (out, back)
        self._near = SocketEnd(path.loop, out, back, self.reset)
        self._far = SocketEnd(path.loop, back, out, self.reset)
        out.connect(self._near, self._far)
        back.connect(self._far, self._near)
        self._near.attach(accepted)

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.log.closed_s is None

    def pause(self) -> None:
        """Forward nothing and notice nothing, not even that a peer has gone."""
        self._paused = True
        for pipe in self._pipes:
            pipe.paused = True
        self._near.unwatch()
        self._far.unwatch()

    def resume(self) -> None:
        """Begin, or go on with everything that was under way."""
        if not self.is_open:
            return
        self._paused = False
        self._near.watch()
        self._far.watch()
        self._dial()
        for pipe in self._pipes:
            if self.is_open:
                pipe.start()

    def reset(self) -> None:
        """Reset both sides at once."""
        self._close(reset=True)

    def _dial(self) -> None:
        if self._paused or not self.is_open or self._far.sock is not None:
            return
        if time.monotonic() < self._dial_s:
            self._path.loop.at(self._dial_s, self._dial)
            return
        sock = new_socket(self._dial_address[0], self._path.options.receive_buffer_bytes)
        if sock.connect_ex(self._dial_address) in (0, errno.EINPROGRESS):
            self._far.attach(sock)
        else:
            sock.close()
            self.reset()

    def _end_if_done(self) -> None:
        if all(pipe.ended for pipe in self._pipes):
            self._close(reset=False)

    def _close(self, *, reset: bool) -> None:
        if not self.is_open:
            return
        self.pause()
        self._near.close(reset)
        self._far.close(reset)
        self._path.closed(self.log, reset=reset)
        self._on_closed(self)
