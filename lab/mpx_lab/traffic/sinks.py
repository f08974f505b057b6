"""Receivers that read at once and count: one for TCP, one for UDP."""

import collections
import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from mpx.net import tcp
from mpx_lab.traffic.tcp_sender import STREAM

_PIECE_BYTES = 1 << 20
_WAKE_BYTES = 16 * 1024
_ROOM_FOR_IT = 3  # times as much; smaller windows would stall until the delayed acknowledgement
_RETURN_S = 0.02  # a waiting read returns after that, so that counts are never older
_UDP_BUFFER_BYTES = 16 << 20
_UDP_REST_S = 0.002
_UDP_LOOK_S = 0.1
_STACK_BYTES = 256 * 1024
_SO_RCVBUFFORCE = 33


class Sink(Protocol):
    """A receiver of a generator's traffic."""

    port: int  # where it listens

    def totals(self) -> dict[int, int]:
        """Return the bytes of payload that arrived so far, by stream."""

    def failure(self) -> str:
        """Return why it cannot go on, empty while it can."""

    def close(self) -> None:
        """Stop receiving and counting."""


class TcpSink:
    """Takes any number of connections, a thread for each.

    A read waits in the kernel for a large piece (MSG_WAITALL), which throws away (MSG_TRUNC) every segment
    as it comes and so acknowledges it as a reader without delay; this process wakes 50 times a second.
    SO_RCVLOWAT lets the kernel acknowledge without a read, and wakes the reader less often. A reader that
    sleeps would acknowledge less often, and so change what it measures.
    """

    def __init__(self, address: tcp.Address) -> None:
        threading.stack_size(_STACK_BYTES)
        self._listener = socket.create_server(address, family=tcp.family_of(address[0]), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self._totals: collections.Counter[int] = collections.Counter()
        self._lock = threading.Lock()
        self._buffer = memoryview(bytearray(_PIECE_BYTES))  # never written to
        self._closed = False
        self._failure = ""
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def totals(self) -> dict[int, int]:
        """Return the bytes of payload that arrived so far, by stream."""
        with self._lock:
            return dict(self._totals)

    def failure(self) -> str:
        """Return why it cannot go on, empty while it can."""
        return self._failure

    def close(self) -> None:
        """Take no more connections."""
        self._closed = True
        self._listener.close()

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._receive, args=(connection,), daemon=True).start()
        except (OSError, RuntimeError) as error:  # closed; or no more descriptors, memory or threads
            if not self._closed:
                self._failure = (
                    f"it cannot accept more connections: {error}; check the limits of this machine"
                )

    def _receive(self, connection: socket.socket) -> None:
        # A sender ends its "on" time with a reset.
        with connection, contextlib.suppress(ConnectionError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 5, 0))
            try:
                head = connection.recv(STREAM.size, socket.MSG_WAITALL)
            except BlockingIOError:
                return
            if len(head) < STREAM.size:
                return
            stream = STREAM.unpack(head)[0]
            self._count(stream, len(head))
            for received in self._pieces(connection):
                self._count(stream, received)

    def _pieces(self, connection: socket.socket) -> Iterator[int]:
        """Yield how much came, until nothing more does; raises ConnectionError."""
        limit = struct.pack("ll", 0, int(_RETURN_S * 1e6))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        window_bytes = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP)
        if window_bytes >= _ROOM_FOR_IT * _WAKE_BYTES:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _WAKE_BYTES)
        while True:
            try:
                flags = socket.MSG_TRUNC | socket.MSG_WAITALL
                received = connection.recv_into(self._buffer, _PIECE_BYTES, flags)
            except BlockingIOError:
                continue  # nothing for so long
            if not received:
                return
            yield received

    def _count(self, stream: int, size_bytes: int) -> None:
        with self._lock:
            self._totals[stream] += size_bytes


class UdpSink:
    """Counts datagrams. No sender waits for it, so it reads them in batches; its buffer holds far more."""

    def __init__(self, address: tcp.Address) -> None:
        self._socket = socket.socket(tcp.family_of(address[0]), socket.SOCK_DGRAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _UDP_BUFFER_BYTES)
        except PermissionError:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UDP_BUFFER_BYTES)
        self._socket.bind(address)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._received = 0
        self._closed = False
        threading.Thread(target=self._receive, name="receive", daemon=True).start()

    def totals(self) -> dict[int, int]:
        """Return the bytes of payload that arrived so far; all are of stream 0."""
        return {0: self._received}

    def failure(self) -> str:
        """Nothing that a sender does ends it."""
        return ""

    def close(self) -> None:
        """Take no more."""
        self._closed = True

    def _receive(self) -> None:
        buffer = bytearray(65536)
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while not self._closed:
            poll.poll(_UDP_LOOK_S * 1000)
            with contextlib.suppress(BlockingIOError):
                while True:
                    self._received += self._socket.recv_into(buffer)
            time.sleep(_UDP_REST_S)
