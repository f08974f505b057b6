"""Asks for unknown hosts, and waits a short time for their answers."""

import asyncio
from collections.abc import Callable

from mpx_controller.errors import TooMany
from mpx_controller.flows import Messages
from mpx_controller.network.network import Network

TRIES, EACH_S = 2, 0.5
LOOK_S = 0.01
MOST = 4  # hosts that one caller has asked for at once: each question leaves by every port to hosts


class HostSearch:
    """The searches under way."""

    def __init__(self, network: Network, send: Callable[[Messages], None]) -> None:
        self._network, self._send = network, send
        self._under_way: list[tuple[str, str]] = []  # who looks for which

    async def look_for(self, address: str, owner: str) -> None:
        """Return when the host with an address is known, or has not answered; raises TooMany."""
        if self._network.hosts.at(address) is not None:
            return
        if sum(by == owner for by, _ in self._under_way) >= MOST:
            raise TooMany(f"{owner} has {MOST} searches for hosts under way, the maximum; try again")
        first = all(sought != address for _, sought in self._under_way)
        self._under_way.append((owner, address))
        try:
            await self._ask(address, ask=first)
        finally:
            self._under_way.remove((owner, address))

    async def _ask(self, address: str, *, ask: bool) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(TRIES):
            if ask:
                self._send(self._network.host_questions(address))
            until_s = loop.time() + EACH_S
            while loop.time() < until_s:
                if self._network.hosts.at(address) is not None:
                    return
                await asyncio.sleep(LOOK_S)
