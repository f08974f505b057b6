"""Which connections of this host are streams of a command, by their ports.

A client that sends connects to the server, from ports of GLOBUS_TCP_SOURCE_RANGE. It takes them in no order,
and one is that of its control connection, which begins first. A client that receives listens on ports of
GLOBUS_TCP_PORT_RANGE, and the server connects to them, from any port.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from mpx_controller.stock.connections import Connection
from mpx_controller.stock.netmgr.mpx_netmgr.pair import Pair

SENDS, RECEIVES = "GLOBUS_TCP_SOURCE_RANGE", "GLOBUS_TCP_PORT_RANGE"
# Wide, as a client that finds no port waits for minutes, and each stays taken for one after its connection.
WIDTH = 2048
FIRST = 10_240
LAST = 65_536


@dataclass(frozen=True)
class StreamRecogniser:
    """Recognises the streams between two hosts by their ports; this host is the source, or else the sink."""

    pair: Pair
    ports: range
    we_send: bool
    control: int | None = None  # the server's port for commands, once it is known

    @property
    def environment(self) -> dict[str, str]:
        """What the command is to be started with."""
        return {SENDS if self.we_send else RECEIVES: f"{self.ports.start},{self.ports.stop - 1}"}

    @property
    def peer(self) -> str:
        """The address of the other host."""
        return self.pair.sink if self.we_send else self.pair.source

    def seen(self, connections: Iterable[Connection]) -> "tuple[StreamRecogniser, list[int]]":
        """Return the source ports of the streams that there are, beside what was learnt of the server."""
        here = self.pair.source if self.we_send else self.pair.sink
        mine = [
            each
            for each in connections
            if (each.local[0], each.remote[0]) == (here, self.peer) and each.local[1] in self.ports
        ]
        if not self.we_send:
            return self, [each.remote[1] for each in mine]
        control = self.control
        if control is None and mine:  # it is alone, but where this process was kept from looking in time
            counts = Counter(each.remote[1] for each in mine)
            control = min(counts, key=lambda port: (counts[port], port))  # 2811 is below ports for data
        known = replace(self, control=control)
        return known, [each.local[1] for each in mine if each.remote[1] != control]


def chosen_ports(
    environment: Mapping[str, str],
    name: str,
    ephemeral: int,
    used: Collection[int],
    chance: random.Random,
) -> range:
    """Return the ports of a command: those that the environment names, or else some that are free.

    `used`: ports in use; `ephemeral`: from where on the kernel hands ports to everybody. Raises ValueError
    where the environment names none.
    """
    if name in environment:
        low, _, high = environment[name].replace(" ", ",").partition(",")
        if not (low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high) < LAST):
            raise ValueError(
                f"{name}={environment[name]} is not a range of ports; write for example 20000,22000"
            )
        return range(int(low), int(high) + 1)
    blocks = [range(low, low + WIDTH) for low in range(FIRST, LAST - WIDTH, WIDTH)]
    own = [block for block in blocks if block.stop <= ephemeral] or blocks
    free = [block for block in own if not any(port in block for port in used)]
    return chance.choice(free or own)
