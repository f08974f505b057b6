"""What connections tell of themselves that are more than a socket: inside TLS, or through ssh."""

import socket


def overhead_bytes(connection: socket.socket | None) -> int:
    """Return how many bytes were sent over a connection beside those that were given to it."""
    return getattr(connection, "overhead_bytes", 0)


def is_worn(connection: socket.socket | None) -> bool:
    """Tell whether another is to take its place: its key is worn, or there is a better way."""
    return getattr(connection, "is_worn", False)


def is_local(connection: socket.socket) -> bool:
    """Tell whether it ends within this host, at an ssh, so that the kernel knows nothing of the way."""
    return connection.family == socket.AF_UNIX


def peer_host(connection: socket.socket) -> str:
    """Return the address of the other end; empty if it has none. Raises OSError for one that has ended."""
    return "" if is_local(connection) else str(connection.getpeername()[0])
