"""TCP between hosts of a lab, from within the tests."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from mpx_lab.lab import Lab
from mpx_lab.namespace import inside

PORT = 7000
Ends = tuple[socket.socket, socket.socket]  # of the source, of the sink


@contextmanager
def connection(lab: Lab, source: str, sink: str, address: str | None = None) -> Iterator[Ends]:
    """A TCP connection from one host to another, to an address of it or its first."""
    there = address or lab.host(sink).addresses[0]
    family = socket.AF_INET6 if ":" in there else socket.AF_INET
    with (
        inside(lab.host(sink).netns, lambda: socket.create_server((there, PORT), family=family)) as listening,
        inside(lab.host(source).netns, lambda: socket.create_connection((there, PORT), timeout=30)) as near,
    ):
        far, _ = listening.accept()
        with far:
            far.settimeout(30)
            yield near, far


def congestion(one: socket.socket) -> str:
    """Return the congestion control of a connection that has chosen none itself."""
    return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
