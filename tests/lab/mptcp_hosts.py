"""Both ends of a connection of Multipath TCP on hosts of a lab, which compare what was sent and received."""

import subprocess
import sys

from mpx_lab.lab import Lab

RECEIVE = """
import hashlib, socket
listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listening.bind(("", 5001))
listening.listen()
print("ready", flush=True)
while True:
    connection, _ = listening.accept()
    known = hashlib.sha256()
    while data := connection.recv(1 << 16):
        known.update(data)
    connection.sendall(known.digest())
    connection.close()
"""
# Sends whatever it is given line by line: so many bytes for a number, its end for an empty line.
SEND = """
import hashlib, random, socket, struct, sys
SOL_MPTCP, MPTCP_INFO = 284, 1
connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
connection.connect((sys.argv[1], 5001))
known, made = hashlib.sha256(), random.Random(1)
for line in sys.stdin:
    if not line.strip():
        break
    data = made.randbytes(int(line))
    known.update(data)
    connection.sendall(data)
    print(connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 96)[0] + 1, flush=True)
connection.shutdown(socket.SHUT_WR)
assert connection.recv(32, socket.MSG_WAITALL) == known.digest()
assert connection.recv(1) == b""
print("same", flush=True)
"""


def receiver(lab: Lab, host: str) -> "subprocess.Popen[str]":
    """Start what answers each connection with the sum of what it got."""
    process = lab.host(host).popen([sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


class Sender:
    """One connection."""

    def __init__(self, lab: Lab, host: str, to: str) -> None:
        self._process = lab.host(host).popen(
            [sys.executable, "-c", SEND, lab.host(host).address_of(to)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, count: int) -> int:
        """Send so many bytes; return how many subflows there are."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        """End it; fails unless the other side got the very bytes."""
        told, _ = self._process.communicate("\n", timeout=60)
        assert told == "same\n" and self._process.returncode == 0

    def kill(self) -> None:
        """End it without a word."""
        self._process.kill()
        self._process.wait()
