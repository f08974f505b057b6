"""Ports that nobody uses."""

import socket


def free_ports(count: int) -> tuple[int, int]:
    """Return the first and the last of so many ports in a row that were all free just now."""
    while True:
        held = [socket.create_server(("127.0.0.1", 0))]
        first = held[0].getsockname()[1]
        try:
            for port in range(first + 1, first + count):
                held.append(socket.create_server(("127.0.0.1", port)))
        except OSError:
            continue
        else:
            return first, first + count - 1
        finally:
            for each in held:
                each.close()
