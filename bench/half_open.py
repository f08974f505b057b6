"""What users of `mpx serve --tls` notice while somebody holds 10,000 handshakes half open.

    .venv/3.11/bin/python bench/half_open.py [--effort full]

A server of its own for each run. The attacker connects from four addresses (127.0.0.2 to 127.0.0.5) as fast
as the server lets it, sends the beginning of a ClientHello and nothing more, holds all 10,000, and replaces
those that are closed. Meanwhile a user logs in again and again from another address, and from one of the
attacker's. Judged are: the logins, which all have to succeed; how long the slowest takes; and the server's
memory, threads and descriptors above what it had. Exits 1 if a limit was not kept.
"""

import argparse
import contextlib
import os
import resource
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import harness
from figures import Spread, Verdict, machine
from race_loopback import MPX

from mpx.endpoints.ftp.extensions.dialing import CONTROL_PROTOCOL
from mpx.endpoints.ftp.token import token_for
from mpx.errors import MpxError
from mpx.location import parse_location
from mpx.net import tls

HELD = 10_000
ATTACKERS = ("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")
USERS = {"another": "127.0.0.1", "the attacker's": ATTACKERS[0]}
BEGINNING = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # of a ClientHello
RUNS, LOGINS = {"quick": 3, "full": 7}, 20  # from each address, in a run
WITHIN_S, MOST_S = 20.0, 2.0
MOST_MIB, MOST_THREADS, MOST_DESCRIPTORS = 256.0, 10, 2100
_AGAIN_S = 0.05

Run = Mapping[str, Any]


class HalfOpen(harness.Row[Sequence[Run]]):
    """See the head of this file."""

    name = "half-open"
    folder = "reports/half-open"

    def results(self, options: argparse.Namespace) -> Sequence[Run]:
        """Attack a server as often as asked for, and print the table."""
        print(machine(None))
        limit = min(2 * HELD, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        with harness.work_folder("half-open") as folder:
            found = [_run(folder) for _ in range(RUNS[options.effort])]
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Sequence[Run]) -> Sequence[str]:
        """One line for each address that users come from, and one for the server."""
        lines = [
            "| logins from | succeeded | ms, undisturbed | ms, attacked | slowest, ms |",
            "|---|---|---|---|---|",
        ]
        for user in USERS:
            alone = Spread([1000 * took for run in results for took in run["alone"][user]])
            took = [1000 * each for run in results for each in run["attacked"][user]]
            asked = LOGINS * len(results)
            cells = f"{len(took)} of {asked} | {alone:.1f} | {Spread(took):.1f} | {max(took, default=0):.0f}"
            lines.append(f"| {user} address | {cells} |")
        begun = Spread([run["opened"] for run in results])
        more = {
            key: f"{Spread([run[key] for run in results]):.0f}" for key in ("mib", "threads", "descriptors")
        }
        had = f"{more['mib']} MiB, {more['threads']} threads and {more['descriptors']} descriptors more"
        lines.append(f"\nThe server has {had}, with {begun:.0f} connections begun.")
        return lines

    def measured(self, results: Sequence[Run]) -> Sequence[Run]:
        """Return all runs."""
        return results

    def draw(self, results: Sequence[Run], axes: Any) -> None:
        """Each login a dot."""
        for row, user in enumerate(USERS):
            took = [1000 * each for run in results for each in run["attacked"][user]]
            axes.plot(took, [row] * len(took), "o", alpha=0.4)
        axes.set_yticks(range(len(USERS)), [f"from {user} address" for user in USERS])
        axes.set_xlabel("ms for a login, with 10,000 handshakes half open")


def _run(folder: Path) -> Run:
    os.environ["MPX_STATE_DIR"] = str(folder / "state")
    (folder / "served").mkdir(exist_ok=True)
    made = subprocess.run([MPX, "token", "create"], check=True, capture_output=True, text=True)
    os.environ["MPX_TOKEN"] = made.stdout.strip()
    words = [MPX, "serve", str(folder / "served"), "--tls", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            port = parse_location(server.stdout.readline().split()[2]).port
            alone = {user: list(_logins(port, address)) for user, address in USERS.items()}
            before, attacker = _state(server.pid), _Attacker(port)
            with attacker:
                attacked = {user: list(_logins(port, address)) for user, address in USERS.items()}
                after = _state(server.pid)
            more = {key: after[key] - before[key] for key in before}
            return {"alone": alone, "attacked": attacked, "opened": attacker.opened, **more}
        finally:
            server.terminate()


def _state(pid: int) -> dict[str, float]:
    status = Path(f"/proc/{pid}/status").read_text()
    return {
        "mib": int(status.split("VmHWM:")[1].split()[0]) / 1024,
        "threads": int(status.split("Threads:")[1].split()[0]),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
    }


def _logins(port: int, address: str) -> Iterator[float]:
    """Yield how long each login took that succeeded; one that is turned away is tried again meanwhile."""
    for _ in range(LOGINS):
        began_s = time.monotonic()
        while time.monotonic() - began_s < WITHIN_S:
            with contextlib.suppress(OSError, MpxError):
                _log_in(port, address)
                yield time.monotonic() - began_s
                break
            time.sleep(_AGAIN_S)


def _log_in(port: int, address: str) -> None:
    plain = socket.create_connection(("127.0.0.1", port), WITHIN_S, (address, 0))
    context = tls.context(server=False, protocols=[CONTROL_PROTOCOL])
    with tls.secured(plain, context, "the server", WITHIN_S) as control, control.makefile("rb") as replies:
        control.settimeout(WITHIN_S)
        secret = token_for(parse_location(f"mpx://127.0.0.1:{port}/")).secret
        control.sendall(f"USER token\r\nPASS {secret}\r\n".encode())
        if [replies.readline()[:3] for _ in range(3)] != [b"220", b"331", b"230"]:
            raise ConnectionError


class _Attacker:
    """Holds connections half open, from a thread of its own, as long as it is entered."""

    def __init__(self, port: int) -> None:
        self.opened = 0
        self._port = port
        self._held: dict[int, socket.socket] = {}
        self._is_full, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._attack)

    def __enter__(self) -> "_Attacker":
        self._thread.start()
        self._is_full.wait(120)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for connection in self._held.values():
            connection.close()

    def _attack(self) -> None:
        poll = select.poll()
        while not self._stop.is_set():
            for number, _ in poll.poll(0 if self.opened < HELD else 10):
                poll.unregister(number)
                self._held.pop(number).close()
            for _ in range(100):
                with contextlib.suppress(OSError):
                    where = (ATTACKERS[self.opened % len(ATTACKERS)], 0)
                    connection = socket.create_connection(("127.0.0.1", self._port), 5.0, where)
                    connection.sendall(BEGINNING)
                    self._held[connection.fileno()] = connection
                    poll.register(connection, select.POLLIN | select.POLLRDHUP)
                    self.opened += 1
            if self.opened >= HELD:
                self._is_full.set()
                self._stop.wait(0.01)


def judge(stored: Sequence[Run]) -> Iterable[Verdict]:
    """Say which limits were kept."""
    for user in USERS:
        took = [each for run in stored for each in run["attacked"][user]]
        asked = LOGINS * len(stored)
        yield Verdict(f"all logins from {user} address", f"{len(took)} of {asked}", len(took) == asked)
        slowest = max(took, default=WITHIN_S)
        yield Verdict(f"from {user} address within {MOST_S:g} s", f"{slowest:.2f} s", slowest <= MOST_S)
    for key, most in (("mib", MOST_MIB), ("threads", MOST_THREADS), ("descriptors", MOST_DESCRIPTORS)):
        worst = max(run[key] for run in stored)
        yield Verdict(f"at most {most:g} {key} more", f"{worst:.0f}", worst <= most)
    begun = min(run["opened"] for run in stored)
    yield Verdict(f"{HELD} handshakes were begun", str(begun), begun >= HELD)


if __name__ == "__main__":
    harness.run_row(HalfOpen(), judge)
