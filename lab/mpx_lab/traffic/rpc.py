"""Blocks that are each answered, as in writing over NFS: each stream has a limited number in flight.

A stand-in for NFS over TCP, without its files: a client sends `block` bytes at a time, the receiver answers
each in the size of an answer to WRITE, and no more than `slots` are without an answer. Both sides set
TCP_NODELAY, as NFS does: an answer would take two round trips otherwise.
"""

import contextlib
import socket
import struct
from collections.abc import Iterator

from mpx.errors import ConnectionLost
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.log import now_s
from mpx_lab.traffic.sinks import TcpSink

BLOCK = struct.Struct("!I")  # what a stream sends after its number: bytes in each block
ANSWER = bytes(160)  # about the size of an NFS 3 answer to WRITE with its headers
_LONGEST_WAIT_S = 0.05  # a wait returns after that to check the time


class Caller:
    """Fills a connection with blocks (tcp_sender.Fill)."""

    def __init__(self, block_bytes: int, slots: int) -> None:
        self._block_bytes = block_bytes
        self._slots = slots

    def __call__(self, connection: socket.socket, until_s: float, ending: Ending) -> None:
        """Send, and wait for answers, until a time; raises ConnectionLost, OSError."""
        limit = struct.pack("ll", 0, int(_LONGEST_WAIT_S * 1e6))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(BLOCK.pack(self._block_bytes))
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            connection.setsockopt(socket.SOL_SOCKET, option, limit)
        block, unanswered, answer_bytes = memoryview(bytes(self._block_bytes)), 0, 0
        left = block
        while now_s() < until_s and not ending():
            with contextlib.suppress(BlockingIOError):  # not for so long
                if unanswered < self._slots:
                    left = left[connection.send(left) :]
                    if not left:
                        left, unanswered = block, unanswered + 1
                    continue
                got = len(connection.recv(len(ANSWER) * self._slots))
                if not got:
                    raise ConnectionLost("background traffic: the receiver no longer answers")
                answers, answer_bytes = divmod(answer_bytes + got, len(ANSWER))
                unanswered -= answers


class RpcSink(TcpSink):
    """Takes any number of connections, and answers each of their blocks."""

    def _pieces(self, connection: socket.socket) -> Iterator[int]:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = connection.recv(BLOCK.size, socket.MSG_WAITALL)
        if len(head) < BLOCK.size:
            return
        (block_bytes,) = BLOCK.unpack(head)
        flags = socket.MSG_TRUNC | socket.MSG_WAITALL
        while received := connection.recv_into(self._buffer, block_bytes, flags):
            yield received
            if received == block_bytes:
                connection.sendall(ANSWER)
