"""Assigns subflows to connections, by the keys and tokens of their handshakes.

After nakasan (algorithm 3; smoc, algorithm 2), with its slips corrected, and three differences. A subflow
counts once it is answered, so that a flood of SYNs leaves nothing behind, and a peer without Multipath TCP
is left alone. Keys are looked up by token, as a MP_JOIN names no key. Of version 1 only the listener's key is
seen: the initiator's comes in a third packet, of which there is no copy, so that joins of the listener are
not recognised.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from mpx_controller.graph import Port
from mpx_controller.mptcp.option import Capable, Join, token_of
from mpx_controller.mptcp.segment import ACK, FIN, RST, FourTuple, Segment

ANSWER_S = 10.0  # a SYN, or the answer to one, is forgotten after so long without the other
EMPTY_S = 60.0  # a connection without subflows may get new ones for so long, as in Linux
MOST_WAITING = 1_000  # of these from one port of a switch: the oldest go, and none of another port
MOST_CONNECTIONS = 1_000  # opened from one port, and ...
MOST_SUBFLOWS = 4_000  # ... subflows of these


@dataclass(frozen=True)
class MptcpConnection:
    """One connection: its first subflow, the port where that was opened, and the tokens that joins name."""

    number: int
    version: int
    port: Port
    first: FourTuple
    tokens: frozenset[int]
    subflows: frozenset[FourTuple] = frozenset()
    empty_s: float | None = None  # since when it has none


class _Half(NamedTuple):
    """A SYN, or the answer to one."""

    segment: Segment
    port: Port
    until_s: float


class MptcpConnections:
    """All known connections. Their number is bounded, as a host may open thousands."""

    def __init__(self) -> None:
        self._waiting: dict[Port, dict[tuple[FourTuple, bool], _Half]] = {}
        self._all: dict[int, MptcpConnection] = {}
        self._by_token: dict[int, list[int]] = {}
        self._of: dict[FourTuple, int] = {}
        self._finished: dict[FourTuple, FourTuple] = {}  # the direction that has ended
        self._subflows_at: Counter[Port] = Counter()
        self._opened_at: Counter[Port] = Counter()
        self.last = 0
        self.joins_unknown = 0  # that named no connection we know
        self.refused = 0  # subflows beyond what one port may have

    @property
    def all(self) -> tuple[MptcpConnection, ...]:
        """All connections."""
        return tuple(self._all.values())

    def of(self, four: FourTuple) -> MptcpConnection | None:
        """Return the connection of a subflow, named from either side."""
        number = self._of.get(four, self._of.get(four.reverse, 0))
        return self._all.get(number)

    def handshake(
        self, segment: Segment, port: Port, other: Port | None, now_s: float
    ) -> tuple[MptcpConnection, FourTuple] | None:
        """Note a SYN, or the answer to one, that came in at `port`; return the subflow that is new, if any.

        `other`: where its receiver is. They may come in either order, as different switches hand them over.
        """
        if segment.option is None:
            return None
        is_answer = bool(segment.flags & ACK)
        four = segment.ends.reverse if is_answer else segment.ends
        half = _Half(segment, port, now_s + ANSWER_S)
        before = self._waiting.get(other, {}).pop((four, not is_answer), None) if other else None
        if before is None or before.until_s <= now_s or not _fit(before.segment, segment):
            waiting = self._waiting.setdefault(port, {})
            waiting.pop((four, is_answer), None)
            if len(waiting) >= MOST_WAITING:
                del waiting[next(iter(waiting))]
            waiting[four, is_answer] = half
            return None
        asked, answered = (before, half) if is_answer else (half, before)
        known = self._opened(four, asked, answered, now_s)
        if known is None:
            return None
        for old in (four, four.reverse):  # its end was not seen
            self.ended(old, now_s)
        known = replace(known, subflows=known.subflows | {four}, empty_s=None)
        self._all[known.number] = known
        self._of[four] = known.number
        self._subflows_at[known.port] += 1
        return known, four

    def _opened(self, four: FourTuple, asked: _Half, answered: _Half, now_s: float) -> MptcpConnection | None:
        """Return the connection that a new subflow is of; None for one that is known, or is not to be."""
        asks, answer, before = asked.segment.option, answered.segment.option, self.of(four)
        if isinstance(asks, Capable) and isinstance(answer, Capable) and answer.key is not None:
            tokens = {token_of(answer.key, answer.version)}
            if before is not None and tokens <= before.tokens:
                return None
            if self._is_full(asked.port):
                return None
            if asks.key is not None:
                tokens.add(token_of(asks.key, answer.version))
            self.last += 1
            made = MptcpConnection(
                self.last, answer.version, asked.port, four, frozenset(tokens), empty_s=now_s
            )
            self._keep(made)
            return made
        if isinstance(asks, Join) and asks.token is not None and isinstance(answer, Join):
            known = self._named(asks.token, four.sink)
            self.joins_unknown += known is None
            if known is None or known is before or self._is_full(known.port):
                return None
            return known
        return None

    def ends(self, segment: Segment) -> FourTuple | None:
        """Note a FIN or RST; return the subflow that is over now: reset, or finished from both sides."""
        four = segment.ends if segment.ends in self._of else segment.ends.reverse
        if four not in self._of or not segment.flags & (FIN | RST):
            return None
        first = self._finished.setdefault(four, segment.ends)
        return four if segment.flags & RST or first != segment.ends else None

    def has_begun_to_end(self, four: FourTuple) -> bool:
        """Whether one side of a subflow has finished."""
        return four in self._finished

    def ended(self, four: FourTuple, now_s: float) -> None:
        """Remove a subflow; its connection is forgotten later, as it may get others."""
        number = self._of.pop(four, None)
        self._finished.pop(four, None)
        if number is not None:
            known = self._all[number]
            left = known.subflows - {four}
            self._all[number] = replace(known, subflows=left, empty_s=None if left else now_s)
            self._subflows_at[known.port] -= 1

    def expire(self, now_s: float) -> None:
        """Forget unanswered SYNs, and connections without a subflow for too long."""
        for port, waiting in list(self._waiting.items()):
            for key, half in list(waiting.items()):
                if half.until_s > now_s:
                    break
                del waiting[key]
            if not waiting:
                del self._waiting[port]
        for known in self.all:
            if known.empty_s is not None and known.empty_s + EMPTY_S <= now_s:
                del self._all[known.number]
                self._opened_at[known.port] -= 1
                for token in known.tokens:
                    self._by_token[token].remove(known.number)
                    if not self._by_token[token]:
                        del self._by_token[token]

    def restore(self, some: Iterable[MptcpConnection], last: int) -> None:
        """Restore what was known before a restart."""
        self.last = last
        for known in some:
            self._keep(known)
            self._of.update(dict.fromkeys(known.subflows, known.number))
            self._subflows_at[known.port] += len(known.subflows)

    def _is_full(self, port: Port) -> bool:
        full = self._subflows_at[port] >= MOST_SUBFLOWS or self._opened_at[port] >= MOST_CONNECTIONS
        self.refused += full
        return full

    def _keep(self, known: MptcpConnection) -> None:
        self._all[known.number] = known
        self._opened_at[known.port] += 1
        for token in known.tokens:
            self._by_token.setdefault(token, []).append(known.number)

    def _named(self, token: int, receiver: str) -> MptcpConnection | None:
        """Return the connection with a token: tokens are a host's own, so two hosts may have one."""
        found = [self._all[number] for number in self._by_token.get(token, ())]
        for known in reversed(found):
            if any(receiver in (four.source, four.sink) for four in (known.first, *known.subflows)):
                return known
        return found[-1] if found else None


def _fit(one: Segment, other: Segment) -> bool:
    """Whether each goes to the hardware address that the other came from."""
    return (one.sender, one.receiver) == (other.receiver, other.sender)
