"""A store that keeps a second copy, and its client, as programs of hosts: a stand-in for Ceph.

    store.py serve PROTOCOL PORT [NEXT]                 says `ready`; NEXT: the host that has the second copy
    store.py write|read PROTOCOL HOST PORT BYTES TIMES  says how many seconds each took on average

What is written is passed on while it arrives, and is written when the second copy is. Each file has a
connection of its own; PROTOCOL is tcp or mptcp.
"""

import socket
import struct
import sys
import threading
import time

MPTCP = 262  # IPPROTO_MPTCP
PIECE = bytes(256 * 1024)
ASKED = struct.Struct("!cQ")  # what, and of how many bytes
DONE = b"k"


def opened(protocol: str) -> socket.socket:
    """Return a socket of that protocol."""
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP if protocol == "mptcp" else 0)


def serve(protocol: str, port: int, following: str) -> None:
    """Do what clients ask for, for ever."""
    listening = opened(protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("", port))
    listening.listen(64)
    print("ready", flush=True)
    while True:
        client = listening.accept()[0]
        threading.Thread(target=answer, args=(client, protocol, port, following), daemon=True).start()


def answer(client: socket.socket, protocol: str, port: int, following: str) -> None:
    """Do what one client asks for."""
    with client:
        what, size = ASKED.unpack(client.recv(ASKED.size, socket.MSG_WAITALL))
        if what == b"r":
            fill(client, size)
        elif following:
            with opened(protocol) as second:
                second.connect((following, port))
                second.sendall(ASKED.pack(b"w", size))
                drain(client, size, second)
                second.recv(1)
        else:
            drain(client, size, None)
        client.sendall(DONE)


def fill(to: socket.socket, size: int) -> None:
    """Send so many bytes."""
    while size > 0:
        size -= to.send(PIECE[:size] if size < len(PIECE) else PIECE)


def drain(source: socket.socket, size: int, to: socket.socket | None) -> None:
    """Receive so many bytes, and pass them on."""
    buffer = bytearray(len(PIECE))
    while size > 0 and (got := source.recv_into(buffer, min(size, len(buffer)))):
        size -= got
        if to is not None:
            to.sendall(memoryview(buffer)[:got])


def ask(what: str, protocol: str, host: str, port: int, size: int, times: int) -> None:
    """Write or read files one after the other, and tell how long each took."""
    began_s = time.monotonic()
    for _ in range(times):
        with opened(protocol) as server:
            server.connect((host, port))
            server.sendall(ASKED.pack(what[0].encode(), size))
            if what == "write":
                fill(server, size)
            else:
                drain(server, size, None)
            server.recv(1)
    print((time.monotonic() - began_s) / times, flush=True)


if __name__ == "__main__":
    word, protocol, *more = sys.argv[1:]
    if word == "serve":
        serve(protocol, int(more[0]), more[1] if more[1:] else "")
    else:
        ask(word, protocol, more[0], *map(int, more[1:]))
