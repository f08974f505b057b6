"""Ports that nobody uses."""

import random
import socket
from pathlib import Path

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
FEW = 1000  # ports among which two tests that run at once would too often choose the same


def free_ports(count: int) -> tuple[int, int]:
    """Return the first and the last of so many ports in a row that were all free just now.

    The kernel gives none of them to others in the meantime: they lie outside of what it hands out by itself.
    """
    low, high = map(int, EPHEMERAL.read_text().split())
    ours = range(high + 1, 65_536) if high < 65_536 - FEW else range(10_240, low)
    while True:
        first = random.SystemRandom().choice(ours[: 1 - count] if count > 1 else ours)
        held = []
        try:
            for port in range(first, first + count):
                held.append(socket.create_server(("127.0.0.1", port)))
        except OSError:
            continue
        else:
            return first, first + count - 1
        finally:
            for each in held:
                each.close()
