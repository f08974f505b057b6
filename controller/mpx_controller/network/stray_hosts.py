"""Hosts that were heard over bridges when other ports of these were used; they are not where they were heard.

Copies that circled, or came by a bridge while it was the only way, have moved hosts to the ports there.
"""

from collections.abc import Collection, Iterable

from mpx_controller.graph import Port
from mpx_controller.network.host_question import OUR_HARDWARE
from mpx_controller.network.hosts import Host

STRAY_S = 1.0  # frames, and what switches tell of them, are still under way when a port is used no more
OURS = bytes.fromhex(OUR_HARDWARE.replace(":", ""))


class StrayHosts:
    """Who has been forgotten for that, and the ports whose frames may have come by the ways of before."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self._ports: frozenset[Port] = frozenset()
        self._until_s = -float("inf")
        self._asks_s = float("inf")

    def forgotten(self, hosts: Iterable[Host], ports: Collection[Port], now_s: float) -> None:
        """Note whom to ask for, and ports that frames may go on to come in on that should not have."""
        self._hosts |= {host.hardware: host for host in hosts}
        if ports:
            self._ports, self._until_s = frozenset(ports), now_s + STRAY_S
        self._asks_s = now_s

    def is_stray(self, port: Port, data: bytes, now_s: float) -> bool:
        """Whether a frame may have come the wrong way; answers to us go as far as the first switch only."""
        return now_s < self._until_s and port in self._ports and data[:6] != OURS

    def due(self, now_s: float) -> list[Host]:
        """Return who is to be asked for: at once, and when nothing is under way any more."""
        if now_s < self._asks_s:
            return []
        due = list(self._hosts.values())
        if now_s < self._until_s:
            self._asks_s = self._until_s
        else:
            self._hosts, self._asks_s = {}, float("inf")
        return due
