"""What a server listens with. Imports little, as the other end of ssh listens before it loads the rest."""

import socket

from mpx.net import mptcp

_BACKLOG = 512


def listen(host: str, port: int, *, over_mptcp: bool) -> socket.socket:
    """Listen; `over_mptcp`: data comes to this port, too, and that may be of Multipath TCP.

    Raises OSError and OverflowError.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = mptcp.socket_for(family) if over_mptcp else socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError):
        listener.close()
        raise
    return listener
