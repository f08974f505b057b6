"""Serves SFTP over a socket: requests go to a storage as they come, and answers go out in whatever order.

One session, for the process that started this one and trusts it. A storage may answer from threads of its
own; a thread here sends what they answer, so that none of them waits for whoever reads.
"""

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.inbox import Inbox
from mpx.endpoints.sftp.served import replies
from mpx.endpoints.sftp.served.requests import Asked, parse_request, version
from mpx.endpoints.sftp.wire import Code, Reply, ServerLimits, Status

BLOCK_BYTES = 1024 * 1024 - 64  # what is read or written at once, so that a packet has 1 MiB
Answer = Callable[[Reply], None]


class Storage(Protocol):
    """What is served. `answer` is called once for each request, from any thread, soon or later."""

    extensions: Mapping[str, str]  # that it answers, beside those of the server itself

    def ask(self, asked: Asked, answer: Answer, /) -> None:
        """Do what is asked; what is lent in a request is to be copied before this returns."""
        ...

    def close(self) -> None:
        """Close what is open, as nobody asks any more."""
        ...


class StorageServer:
    """Serves until whoever asks has closed the socket."""

    def __init__(self, storage: Storage, connection: socket.socket, handles: int) -> None:
        """`handles`: that may be open at once."""
        self._storage = storage
        self._connection = connection
        self._limits = ServerLimits(BLOCK_BYTES + 64, BLOCK_BYTES, BLOCK_BYTES, handles)
        self._answers: queue.SimpleQueue[tuple[int, Reply] | bytes | None] = queue.SimpleQueue()

    def serve(self) -> None:
        """Answer until the socket is closed at the other end; raises WireError for what is no SFTP."""
        sender = threading.Thread(target=self._send, name="answers", daemon=True)
        sender.start()
        try:
            self._receive()
        finally:
            self._storage.close()
            self._answers.put(None)
            sender.join()

    def _receive(self) -> None:
        inbox, is_begun = Inbox(), False
        while got := self._connection.recv_into(inbox.room()):
            inbox.received(got)
            for packet in inbox.packets():
                if is_begun:
                    self._take(parse_request(packet))
                else:
                    version(packet)
                    is_begun = True
                    self._answers.put(replies.hello({wire.LIMITS: "1", **self._storage.extensions}))

    def _take(self, asked: Asked) -> None:
        answer = partial(self._answer, asked.number)
        if asked.extension == wire.LIMITS:
            answer(replies.limits(self._limits))
        elif asked.extension and asked.extension not in self._storage.extensions:
            answer(Status(Code.OP_UNSUPPORTED, "no such extension"))
        else:
            self._storage.ask(asked, answer)

    def _answer(self, number: int, reply: Reply) -> None:
        self._answers.put((number, reply))

    def _send(self) -> None:
        """Send what is answered; once nobody reads any more answers are dropped."""
        with contextlib.suppress(OSError):
            while (each := self._answers.get()) is not None:
                parts = [each] if isinstance(each, bytes) else replies.written(*each)
                self._send_all([memoryview(part) for part in parts])

    def _send_all(self, parts: list[memoryview]) -> None:
        while parts:
            sent = self._connection.sendmsg(parts)
            while parts and sent >= len(parts[0]):
                sent -= len(parts.pop(0))
            if parts:
                parts[0] = parts[0][sent:]
