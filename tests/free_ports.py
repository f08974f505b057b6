"""Ports that nobody uses."""

import os
import random
import socket
from pathlib import Path

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
FEW = 1000  # ports among which two tests that run at once would too often choose the same


def free_ports(count: int) -> tuple[int, int]:
    """Return the first and the last of so many ports in a row that were all free just now.

    The kernel gives none of them to others in the meantime: they lie outside of what it hands out by itself.
    Nor do the other workers of the same run of tests: each chooses among ports of its own.
    """
    low, high = map(int, EPHEMERAL.read_text().split())
    ours = _of_this_worker(range(high + 1, 65_536) if high < 65_536 - FEW else range(10_240, low))
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


def _of_this_worker(ports: range) -> range:
    """Return a part of them that no other process of pytest-xdist has."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    each = len(ports) // max(number + 1, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    return ports[number * each : (number + 1) * each]
