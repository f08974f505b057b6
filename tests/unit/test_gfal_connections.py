"""What is counted of connections that libraries open and close."""

import multiprocessing
import socket
import time
from concurrent.futures import ProcessPoolExecutor

from mpx.endpoints.gfal.served.connections import ForeignConnections

COUNT, EACH_BYTES = 40, 1000


def moved_and_kept() -> tuple[list[tuple[int, int]], int]:
    """What is told as connections come and go, and what is kept of them; in a process without others."""
    connections, told = ForeignConnections(), []
    connections.begin()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for i in range(COUNT):
            with socket.create_connection(listener.getsockname()) as sends, listener.accept()[0] as receives:
                sends.sendall(bytes(EACH_BYTES))
                connections.look()
                while min(connections.totals) < (i + 1) * EACH_BYTES:  # it is acknowledged on the way
                    time.sleep(0.001)
                    connections.look()
                receives.recv(EACH_BYTES, socket.MSG_WAITALL)
            told.append(connections.totals)
        connections.look()
    told.append(connections.totals)
    connections.begin()
    told.append(connections.totals)
    return told, sum(len(each) for each in vars(connections).values() if isinstance(each, dict))


def test_closed_connections_are_counted_and_forgotten() -> None:
    """What was kept of each took its time whenever the copy was looked at."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        told, kept = pool.submit(moved_and_kept).result()
    *during, after, again = told
    for i, (sent, got) in enumerate(during):
        assert (i + 1) * EACH_BYTES <= sent <= (i + 1) * (EACH_BYTES + 2)  # its beginning counts as one byte
        assert got == (i + 1) * EACH_BYTES
    assert after == during[-1] and again == (0, 0)
    assert kept == 0
