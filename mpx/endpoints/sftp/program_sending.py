"""How a program's own connection sends: what its kernel tells of it, and which congestion control it has."""

import time
from dataclasses import replace
from functools import partial

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.session import SftpSession, extended
from mpx.endpoints.sftp.wire import Extended, Reply
from mpx.engine.carrier import CarrierContext
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.stream import SentCounters, StreamTotals
from mpx.net.tcp_info import TcpInfo, parse_tcp_info

ASKED_S = 0.1  # so often what the kernel knows
_KEY_BYTES = 8  # of which connection it tells


class ProgramSending:
    """Of the session that one worker has, and of those it had. Used by the worker's thread.

    `totals` is replaced as a whole, for others to read.
    """

    def __init__(self, context: CarrierContext) -> None:
        self.totals = StreamTotals()  # but for bytes
        self._context = context
        self._ended = StreamTotals()  # of connections that are used no more
        self._of: bytes | None = None  # the connection that is told of
        self._counters, self._first = SentCounters(), StreamTotals()
        self._asked_s: float | None = None  # when it was asked last, and has not answered since
        self._next_s = 0.0
        self._has = ""  # the congestion control that was told last

    def watch(self, session: SftpSession, moved_bytes: int) -> None:
        """Ask what the kernel knows, if it is time to; `moved_bytes`: that have arrived by now."""
        now_s = time.monotonic()
        if self._asked_s is not None or now_s < self._next_s or wire.SENDING not in session.extensions:
            return
        self._asked_s = now_s
        session.submit(extended(wire.SENDING), partial(self._told, moved_bytes))

    def use(self, session: SftpSession, congestion: str | None) -> None:
        """Have it send with a congestion control, if it does not yet."""
        if congestion and congestion != self._has and wire.CONGESTION in session.extensions:
            self._has = congestion
            asked = extended(wire.CONGESTION, wire.text(congestion.encode()))
            session.submit(asked, partial(self._answered, congestion))

    def lost(self) -> None:
        """Note that the session is not used any more."""
        self.totals = self._ended = self._and_ended(self._counters.last.none_open())
        self._counters, self._first, self._of = SentCounters(), StreamTotals(), None
        self._asked_s, self._has = None, ""

    def _answered(self, congestion: str, reply: Reply) -> None:
        if isinstance(reply, wire.Status) and reply.code != wire.Code.OK:
            self._context.supervisor.note(f"{congestion} is not used everywhere: {reply.message}")
            self._context.controls[DEFAULT_PATH].congestion_refused.set()

    def _told(self, moved_bytes: int, reply: Reply) -> None:
        now_s, self._asked_s = time.monotonic(), None
        self._next_s = now_s + ASKED_S
        if not isinstance(reply, Extended):
            return
        key, info = reply.content[:_KEY_BYTES], parse_tcp_info(reply.content[_KEY_BYTES:])
        if info is None:  # nothing is connected
            return
        if key != self._of:  # others may have used it before, so that it counts from here
            self._ended = self._and_ended(self._counters.last.none_open())
            self._of, self._counters = key, SentCounters()
            self._first = replace(_counted(info), bytes=moved_bytes)
        self._counters.take(now_s, _since(info, self._first), moved_bytes - self._first.bytes)
        self.totals = self._and_ended(self._counters.last)

    def _and_ended(self, now: StreamTotals) -> StreamTotals:
        sums = replace(self._ended)
        sums.add(now)
        return sums


def _counted(info: TcpInfo) -> StreamTotals:
    return StreamTotals(
        retransmits=info.retransmits,
        busy_s=info.busy_s,
        limited_by_receiver_s=info.limited_by_receiver_s,
        limited_by_sender_s=info.limited_by_sender_s,
    )


def _since(info: TcpInfo, first: StreamTotals) -> TcpInfo:
    return replace(
        info,
        retransmits=info.retransmits - first.retransmits,
        busy_s=info.busy_s - first.busy_s,
        limited_by_receiver_s=info.limited_by_receiver_s - first.limited_by_receiver_s,
        limited_by_sender_s=info.limited_by_sender_s - first.limited_by_sender_s,
    )
