"""Ports that ordinary bridges join, and which of these are not used, so that no frame loops over bridges.

A bridge does not forward LLDP, so the ports that it joins look like edges. A broadcast discovery frame passes
it: where that of one port arrives on another, a bridge joins the two.
"""

from collections.abc import Collection, Hashable, Iterable

from mpx_controller.graph import Link, Port

LOST_S = 10.0  # two ports count as joined for so long after the last broadcast between them


class Bridged:
    """Which ports receive the broadcast discovery frames of which others."""

    def __init__(self) -> None:
        self._heard: dict[Port, dict[Port, float]] = {}  # on each: when that of each other arrived last

    def heard(self, port: Port, sender: Port | None, now_s: float) -> bool:
        """Note that such a frame has arrived; return whether that joins two ports anew.

        `sender`: None where it is not one of ours. Then what is known is kept: whoever sends many of them has
        ours dropped, and frames must not loop for that.
        """
        known = self._heard.get(port, {})
        if sender is None:
            known.update(dict.fromkeys(known, now_s))
            return False
        new = sender not in known
        self._heard.setdefault(port, {})[sender] = now_s
        return new

    def gone(self, ports: Collection[Port]) -> bool:
        """Forget ports; return whether one was joined to another."""
        return self._forget(
            [
                (port, sender)
                for port, known in self._heard.items()
                for sender in known
                if port in ports or sender in ports
            ]
        )

    def lost(self, now_s: float, silent: Collection[int]) -> bool:
        """Forget what has not been heard for too long, but at switches in `silent`; return whether it was."""
        for port, known in self._heard.items():
            for sender in known:
                if port.switch in silent or sender.switch in silent:
                    known[sender] = now_s
        return self._forget(
            [
                (port, sender)
                for port, known in self._heard.items()
                for sender, last_s in known.items()
                if now_s - last_s > LOST_S
            ]
        )

    def stood_still(self, gap_s: float, now_s: float) -> None:
        """Note that this program was suspended for so long until now, which does not count as silence."""
        for known in self._heard.values():
            for sender, last_s in known.items():
                known[sender] = min(now_s, last_s + gap_s)

    def next_s(self) -> float:
        """Return when something is lost unless it is heard again."""
        times = (last_s for known in self._heard.values() for last_s in known.values())
        return min((last_s + LOST_S for last_s in times), default=float("inf"))

    @property
    def pairs(self) -> list[tuple[Port, Port]]:
        """Ports that are joined, each with another."""
        return [(port, sender) for port, known in self._heard.items() for sender in known]

    def _forget(self, pairs: list[tuple[Port, Port]]) -> bool:
        for port, sender in pairs:
            del self._heard[port][sender]
            if not self._heard[port]:
                del self._heard[port]
        return bool(pairs)


def closes_a_loop(
    edges: Iterable[Port], tree: Iterable[Link], pairs: Iterable[tuple[Port, Port]]
) -> frozenset[Port]:
    """Return the edges over which frames would loop, were they used beside the tree and all other edges.

    Of those that bridges join the least is used. Where switches meet nowhere but at bridges each part of the
    network uses one of its own, unless another bridge joins these parts already.
    """
    joined = _Joined()
    for one, other in pairs:
        joined.join(one, other)
    for link in tree:
        joined.join(link.start.switch, link.end.switch)
        for end in (link.start, link.end):  # a bridge can be where a link is, too
            joined.join(end.switch, end)
    return frozenset(port for port in sorted(edges) if not joined.join(port.switch, port))


class _Joined:
    """Connected components of switches, and of ports for the bridges behind them."""

    def __init__(self) -> None:
        self._towards: dict[Hashable, Hashable] = {}

    def join(self, one: Hashable, other: Hashable) -> bool:
        """Join two; return whether they were apart."""
        ends = self._root(one), self._root(other)
        if ends[0] != ends[1]:
            self._towards[ends[0]] = ends[1]
        return ends[0] != ends[1]

    def _root(self, one: Hashable) -> Hashable:
        while (above := self._towards.get(one, one)) != one:
            self._towards[one] = self._towards.get(above, above)
            one = above
        return one
