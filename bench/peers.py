"""Peers of a bench in processes of their own: a server, and ports that do not answer."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

APPEARS_WITHIN_S = 60.0


@contextlib.contextmanager
def own_server(root: Path) -> Iterator["OwnServer"]:
    """Run `mpx serve` on a folder, as a user does."""
    command = [sys.executable, "-m", "mpx", "serve", str(root), "--writable", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
            yield OwnServer(f"ftp://127.0.0.1:{port}/", process.pid)
        finally:
            process.send_signal(signal.SIGTERM)


class OwnServer:
    """A running `mpx serve`."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self._pid = pid

    @property
    def session_pids(self) -> list[int]:
        """The processes that it has started and that have not ended."""
        tasks = Path(f"/proc/{self._pid}/task").iterdir()
        return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]

    @property
    def cpu_s(self) -> float:
        """Processor seconds that it has taken, with its processes that have ended."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # utime, stime, cutime, cstime

    @property
    def peak_bytes(self) -> int:
        """The most memory it has had in use so far."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024


@contextlib.contextmanager
def deaf() -> Iterator[int]:
    """Yield a port that answers no SYN: its queue is full and nobody accepts."""
    with contextlib.ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = listener.getsockname()[1]
        for _ in range(8):
            filler = held.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port


def hear_out(listener: socket.socket, greeting: bytes) -> socket.socket:
    """Accept a client, greet it and, if it was greeted, wait for its first command; answer nothing."""
    ready, _, _ = select.select([listener], [], [], APPEARS_WITHIN_S)
    assert ready, "nobody connects"
    connection, _ = listener.accept()
    connection.sendall(greeting)
    if greeting:
        connection.settimeout(APPEARS_WITHIN_S)
        connection.recv(100)
    return connection


def knocking(port: int) -> int:
    """Return how many sockets of this host wait for an answer to a SYN to that port."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(
        state == "02" and int(remote.split(":")[1], 16) == port
        for _, _, remote, state, *_ in map(str.split, lines)
    )


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Return when a condition holds; raises AssertionError when it does not within a minute."""
    deadline_s = time.monotonic() + APPEARS_WITHIN_S
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.005)
