"""Link discovery: a frame is sent out of each port, and a link is what carries it to another switch.

A port is *undecided* for a moment after it has come up, then an *edge* where no discovery frame has arrived.
Nothing is flooded to undecided ports, so a new link cannot close a loop before it is known. A port that has
had a link does not become an edge until it has been down: if discovery frames get lost, frames must not loop.

Ports without a link also send broadcast discovery frames, which show the ports that bridges join.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from mpx_controller.graph import Link, Port
from mpx_controller.network.bridged import Bridged
from mpx_controller.network.discovery_frame import (
    Found,
    discovery_frame,
    is_to_all,
    read_discovery_frame,
    read_to_all_frame,
    to_all_frame,
)
from mpx_controller.network.ports import PortState

ASK_EVERY_S = 1.0
TO_ALL_EACH = 3  # every so many discovery frames, and with each of the first, a broadcast one is sent
FIRST_S = (0.0, 0.1, 0.3)  # after a port has come up
UNDECIDED_S = 0.6  # after the last of these has been sent, which may be late
LOST_S = 3.2  # a link is lost when no frame has arrived over it for so long
MOST_AGE_S = 5.0  # of a discovery frame: allows for links of 1 s, and slow switches
MOST_PORTS = 512  # of a switch: each is part of the flood entries of all others

log = logging.getLogger(__name__)


@dataclass
class _Watched:
    state: PortState
    since_s: float
    asked: int = 0
    next_s: float = 0.0
    decided_s: float = float("inf")
    had_link: bool = False


@dataclass
class _Seen:
    link: Link
    last_s: float
    delay_s: float = field(default=float("inf"))


class Discovery:
    """The known ports and links; `secret` signs discovery frames.

    `to_all`: whether broadcast ones are sent, too.
    """

    def __init__(self, secret: bytes, *, to_all: bool = True) -> None:
        self._secret, self._to_all = secret, to_all
        self._bridged = Bridged()
        self._ports: dict[Port, _Watched] = {}
        self._at: Counter[int] = Counter()  # ports of each switch
        self._too_many: set[int] = set()  # switches that have had more
        self._links: dict[tuple[Port, Port], _Seen] = {}

    def port(self, state: PortState, now_s: float) -> bool:
        """Note a port as its switch reports it; return whether links or edges have changed."""
        before = self._ports.get(state.port)
        if not state.up:
            return self.port_gone(state.port)
        if before is None:
            switch = state.port.switch
            if self._at[switch] >= MOST_PORTS:
                self._refuse(state.port)
                return False
            self._at[switch] += 1
            self._ports[state.port] = _Watched(state, now_s, next_s=now_s)
            return True
        before.state = state
        return False

    def switch_gone(self, switch: int) -> None:
        """Forget a switch; its ports at the other ends become links again when it is back."""
        gone = [port for port in self._ports if port.switch == switch]
        for port in gone:
            del self._ports[port]
        del self._at[switch]
        self._too_many.discard(switch)
        self._forget(gone)

    def port_gone(self, port: Port) -> bool:
        """Forget a port; return whether it was known."""
        known = self._ports.pop(port, None) is not None
        self._at[port.switch] -= known
        return self._forget([port]) or known

    def questions(self, now_s: float) -> list[tuple[Port, bytes]]:
        """Return the frames that are due, each with the port it is to leave by."""
        due = []
        for port, watched in self._ports.items():
            if watched.next_s <= now_s:
                sent = port, watched.state.hardware, now_s, self._secret
                due.append((port, discovery_frame(*sent)))
                first = watched.asked < len(FIRST_S)
                if self._to_all and not watched.had_link and (first or watched.asked % TO_ALL_EACH == 0):
                    due.append((port, to_all_frame(*sent)))
                watched.asked += 1
                if watched.asked < len(FIRST_S):
                    watched.next_s = max(now_s, watched.since_s + FIRST_S[watched.asked])
                else:
                    watched.next_s = now_s + ASK_EVERY_S
                    watched.decided_s = min(watched.decided_s, now_s + UNDECIDED_S)
        return due

    def heard(self, port: Port, data: bytes, now_s: float) -> bool:
        """Note a frame that came in on `port`; return whether links, or what bridges join, have changed."""
        if is_to_all(data):
            found = self._taken(port, read_to_all_frame(data, self._secret), now_s)
            sender = found.sender if found else None
            return (sender, port) not in self._links and self._bridged.heard(port, sender, now_s)
        found = self._taken(port, read_discovery_frame(data, self._secret), now_s)
        if found is None:
            return False
        for end in (port, found.sender):
            self._ports[end].had_link = True
        ends = (found.sender, port)
        new = ends not in self._links
        if new:  # its ends have one link each; another has been moved
            others = [known for known in self._links if known[0] == ends[0] or known[1] == ends[1]]
            for known in others:
                del self._links[known]
            self._links[ends] = _Seen(Link(*ends), now_s)
        seen = self._links[ends]
        seen.last_s = now_s
        seen.delay_s = min(seen.delay_s, max(0.0, now_s - found.sent_s))
        return new

    def lost(self, now_s: float, silent: Collection[int] = ()) -> bool:
        """Forget the links, and what bridges join, over which nothing has come for too long.

        Those at a switch in `silent`, which is not connected to us for now, are as they were. Return whether
        there were any.
        """
        for ends, seen in self._links.items():
            if any(end.switch in silent for end in ends):
                seen.last_s = now_s
        gone = [ends for ends, seen in self._links.items() if now_s - seen.last_s > LOST_S]
        for each in gone:
            del self._links[each]
        return self._bridged.lost(now_s, silent) or bool(gone)

    def stood_still(self, gap_s: float, now_s: float) -> None:
        """Note that this program was suspended for so long until now; frames may be waiting to be read."""
        for seen in self._links.values():
            seen.last_s = min(now_s, seen.last_s + gap_s)
        self._bridged.stood_still(gap_s, now_s)

    def next_s(self, after_s: float) -> float:
        """Return when there is something to do again; what was decided until `after_s` is not."""
        asks = (watched.next_s for watched in self._ports.values())
        ends = (seen.last_s + LOST_S for seen in self._links.values())
        decides = (watched.decided_s for watched in self._ports.values())
        decides = (at_s for at_s in decides if at_s > after_s)
        return min((*asks, *ends, *decides, self._bridged.next_s()))

    @property
    def links(self) -> tuple[Link, ...]:
        """All links that are seen, each direction by itself."""
        return tuple(seen.link for seen in self._links.values())

    @property
    def bridged(self) -> list[tuple[Port, Port]]:
        """Ports that bridges join, each with another."""
        return self._bridged.pairs

    def delays_s(self, answers_s: Mapping[int, float]) -> dict[tuple[Port, Port], float]:
        """Return for each link how long a frame takes, at least 0.

        That is the least time from sending to one switch until the other forwards the frame, less half of the
        response time of each (`answers_s`), as the frame passes each control connection in one direction.
        """
        return {
            ends: max(0.0, seen.delay_s - sum(answers_s.get(end.switch, 0.0) for end in ends) / 2)
            for ends, seen in self._links.items()
        }

    def ports(self, switch: int | None = None) -> list[PortState]:
        """Return the ports that are up, of one switch or of all."""
        return [each.state for port, each in self._ports.items() if switch in (None, port.switch)]

    def is_edge(self, port: Port, now_s: float) -> bool:
        """Whether hosts may be there, and frames are flooded to it."""
        watched = self._ports.get(port)
        return watched is not None and not watched.had_link and now_s >= watched.decided_s

    def may_be_edge(self, port: Port) -> bool:
        """Whether it is an edge, or undecided."""
        watched = self._ports.get(port)
        return watched is not None and not watched.had_link

    def edges(self, now_s: float) -> set[Port]:
        """Return all ports that are edges."""
        return {port for port in self._ports if self.is_edge(port, now_s)}

    def _refuse(self, port: Port) -> None:
        if port.switch not in self._too_many:
            self._too_many.add(port.switch)
            log.warning(
                "switch %x has more than %d ports; port %d and others are not used",
                *(port.switch, MOST_PORTS, port.number),
            )

    def _taken(self, port: Port, found: Found | None, now_s: float) -> Found | None:
        """Return a discovery frame if it is recent, and of another port that exists."""
        if found is None or found.sender == port or not {port, found.sender} <= self._ports.keys():
            return None
        return found if 0.0 <= now_s - found.sent_s <= MOST_AGE_S else None

    def _forget(self, ports: Iterable[Port]) -> bool:
        gone = set(ports)
        dead = [ends for ends in self._links if gone.intersection(ends)]
        for ends in dead:
            del self._links[ends]
        return self._bridged.gone(gone) or bool(dead)
