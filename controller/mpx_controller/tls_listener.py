"""Accepts TLS connections: answers other protocols with an error, and drops slow clients."""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

HANDSHAKE_S = 10.0  # from when a connection is accepted to the end of its handshake
AGAIN_S = 0.1  # after a connection could not be accepted, for example with too many open files
HEAD_BYTES = 8  # by which a protocol is recognized
MOST_READ = 1 << 16  # bytes at once of what is not read
_HANDSHAKE = 22  # the first byte of TLS

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TlsListener:
    """Accepts connections, and serves each with a `protocol` of its own after the TLS handshake.

    `plain` is given the address and the first bytes of a peer that does not speak TLS, and returns what to
    answer. At most `here` connections of one address, and `together` of all, may be at their handshakes;
    others are closed.
    """

    context: ssl.SSLContext
    protocol: Callable[[], asyncio.BaseProtocol]
    plain: Callable[[str, bytes], bytes]
    here: int
    together: int

    async def serve(self, come: socket.socket) -> None:
        """Accept from a socket that listens, until it is cancelled."""
        loop = asyncio.get_running_loop()
        come.setblocking(False)
        beginning: Counter[str] = Counter()
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                try:
                    connection, (address, *_) = await loop.sock_accept(come)
                except OSError as error:
                    log.info("cannot accept a connection: %s", error)
                    await asyncio.sleep(AGAIN_S)
                    continue
                if beginning[address] >= self.here or beginning.total() >= self.together:
                    connection.close()
                    continue
                beginning[address] += 1
                task = asyncio.create_task(self._begin(connection, address, beginning))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        finally:
            come.close()
            for task in tasks:
                task.cancel()

    async def _begin(self, connection: socket.socket, address: str, beginning: Counter[str]) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                head = await _first_bytes(connection)
                if head[:1] == bytes([_HANDSHAKE]):
                    await loop.connect_accepted_socket(self.protocol, connection, ssl=self.context)
                    return
                if head:
                    await _answered(connection, self.plain(address, head))
        except (OSError, TimeoutError) as error:
            log.info("%s has not begun with TLS: %s", address, error or "the TLS handshake takes too long")
        finally:
            beginning[address] -= 1
            if not beginning[address]:
                del beginning[address]
        connection.close()


async def _first_bytes(connection: socket.socket) -> bytes:
    """Wait for the first bytes, and return them without taking them from the connection."""
    loop = asyncio.get_running_loop()
    connection.setblocking(False)
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(HEAD_BYTES, socket.MSG_PEEK)


async def _answered(connection: socket.socket, answer: bytes) -> None:
    """Answer, and read on until the other side ends: a reset would take the answer from it."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connection, answer)
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
    while await loop.sock_recv(connection, MOST_READ):
        pass
