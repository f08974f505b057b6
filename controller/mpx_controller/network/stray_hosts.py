"""Stray hosts: learnt at ports of a bridge that are not used any more, so that their port is not known.

Frames that looped, or that came over a bridge while it was the only path, have made hosts appear at its
ports.
"""

from collections.abc import Collection, Iterable

from mpx_controller.graph import Port
from mpx_controller.network.host_question import OUR_HARDWARE
from mpx_controller.network.hosts import Host

STRAY_S = 1.0  # frames may be in flight for so long after a port is no longer used
OURS = bytes.fromhex(OUR_HARDWARE.replace(":", ""))


class StrayHosts:
    """Stray hosts, and the ports whose frames may still have taken an old path."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self._ports: frozenset[Port] = frozenset()
        self._until_s = -float("inf")
        self._asks_s = float("inf")

    def forgotten(self, hosts: Iterable[Host], ports: Collection[Port], now_s: float) -> None:
        """Note hosts to ask for, and ports on which frames may still arrive that should not."""
        self._hosts |= {host.hardware: host for host in hosts}
        if ports:
            self._ports, self._until_s = frozenset(ports), now_s + STRAY_S
        self._asks_s = now_s

    def is_stray(self, port: Port, data: bytes, now_s: float) -> bool:
        """Whether a frame may have taken an old path; answers to us go to the first switch only."""
        return now_s < self._until_s and port in self._ports and data[:6] != OURS

    def due(self, now_s: float) -> list[Host]:
        """Return the hosts to be asked for: at once, and again when no frame is in flight any more."""
        if now_s < self._asks_s:
            return []
        due = list(self._hosts.values())
        if now_s < self._until_s:
            self._asks_s = self._until_s
        else:
            self._hosts, self._asks_s = {}, float("inf")
        return due
