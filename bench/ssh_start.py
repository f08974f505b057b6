"""How soon a copy over ssh sends its first byte of data, beside what ssh itself takes.

    sudo .venv/3.11/bin/python bench/ssh_start.py        (needs sshd; without root only loopback)

A private sshd, both ends here: on loopback, and across an emulated path of 60 ms. Each round runs
`ssh HOST true`, `ssh HOST python3 -c pass` and an upload of 1 kB with nothing known of the server; the first
byte is when the partial file at the receiver holds one. Goal: `ssh HOST true`, the start of a Python there
and four round trips.
"""

import argparse
import contextlib
import ctypes
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import harness
from figures import Spread, Verdict, machine
from free_ports import free_ports
from install_peers import find_peer
from mpx_lab import namespace
from mpx_lab.lab import Lab
from mpx_lab.private_sshd import HOST, private_sshd
from mpx_lab.topology import Topology, wan
from race_loopback import MPX

RATE_BPS, RTT_S, ROUND_TRIPS = 1_000_000_000, 0.060, 4
RUNS = {"quick": 10, "full": 30}
LOOPBACK, PATH = "loopback", "60 ms"
RTTS_S = {LOOPBACK: 0.0, PATH: RTT_S}
TRUE, PYTHON = "ssh HOST true", "ssh HOST python3 -c pass"
FIRST, WHOLE, LIST = "mpx copy of 1 kB: first byte", "mpx copy of 1 kB", "mpx list of a folder"
_IN_MODIFY, _IN_CREATE = 0x2, 0x100  # inotify.h

Results = Mapping[tuple[str, str], Sequence[float]]  # seconds, by path and by what


class SshStart(harness.Row[Results]):
    """See the head of this file."""

    name = "ssh-start"
    folder = "reports/ssh-start"

    def results(self, options: argparse.Namespace) -> Results:
        """Measure on each path, and print the table."""
        print(machine())
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is compiled is kept, as it is for users
        found: dict[tuple[str, str], list[float]] = {}
        runs = RUNS[options.effort]
        with harness.work_folder("ssh-start") as folder:
            with private_sshd(find_peer("sshd"), free_ports(1)[0]):
                _measure(folder, LOOPBACK, runs, found)
            if os.geteuid() == 0:
                _across(folder, runs, found)
            else:
                print(f"only {LOOPBACK}: a path of {PATH} needs root")
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Results) -> Sequence[str]:
        """Each command, in seconds."""
        lines = ["| path | what | seconds |", "|---|---|---|"]
        return lines + [f"| {path} | {what} | {Spread(took_s)} |" for (path, what), took_s in results.items()]

    def measured(self, results: Results) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [
            {"path": path, "what": what, "seconds": list(took_s)} for (path, what), took_s in results.items()
        ]

    def draw(self, results: Results, axes: Any) -> None:
        """A bar for each command."""
        axes.barh([", ".join(case) for case in results], [Spread(each).median for each in results.values()])
        axes.set_xlabel("seconds")


def _across(folder: Path, runs: int, found: dict[tuple[str, str], list[float]]) -> None:
    """Measure between two hosts of a lab."""
    link = wan("src", "dst", rate_bps=RATE_BPS, rtt_s=RTT_S)
    with Lab.up(Topology("ssh-start", ("src",), ("dst",), links=(link,)), "ssh-start") as lab:
        client, server = lab.host("src"), lab.host("dst")
        there = partial(namespace.inside, server.netns)
        with private_sshd(find_peer("sshd"), free_ports(1)[0], address=server.addresses[0], run=there):
            namespace.inside(client.netns, lambda: _measure(folder, PATH, runs, found))


def _measure(folder: Path, path: str, runs: int, found: dict[tuple[str, str], list[float]]) -> None:
    """Run all of it so often, in turns, and add how long each took."""
    source, far = folder / "source", folder / "far"
    source.write_bytes(b"x" * 1000)
    remote = ("--remote-mpx", MPX)
    for turn in range(-1, runs):  # the first has much to load, and does not count
        far.mkdir()
        os.environ["MPX_STATE_DIR"] = str(folder / f"state-{path.partition(' ')[0]}-{turn}")
        took_s = {
            TRUE: _timed("ssh", HOST, "true"),
            PYTHON: _timed("ssh", HOST, sys.executable, "-c", "pass"),
        }
        with _first_byte_in(far) as came_s:
            began_s = time.monotonic()
            took_s[WHOLE] = _timed(MPX, "copy", "-q", source, f"{HOST}:{far}/target", *remote)
        took_s[FIRST] = came_s[0] - began_s
        took_s[LIST] = _timed(MPX, "list", f"{HOST}:{far}", *remote)
        (far / "target").unlink()
        far.rmdir()
        for what in (TRUE, PYTHON, FIRST, WHOLE, LIST) if turn >= 0 else ():
            found.setdefault((path, what), []).append(took_s[what])


def _timed(*words: object) -> float:
    began_s = time.monotonic()
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began_s


@contextlib.contextmanager
def _first_byte_in(folder: Path) -> Iterator[list[float]]:
    """Watch a folder; the list that is yielded has, at the end, when a file in it held a byte of data.

    A file may have its size before, so it is read.
    """
    library = ctypes.CDLL(None, use_errno=True)
    watch = library.inotify_init1(os.O_CLOEXEC)
    if library.inotify_add_watch(watch, os.fsencode(folder), _IN_MODIFY | _IN_CREATE) < 0:
        raise OSError(ctypes.get_errno(), "cannot watch a folder", str(folder))
    came_s: list[float] = []
    reads, writes = os.pipe()

    def run() -> None:
        poll = select.poll()
        for descriptor in (watch, reads):
            poll.register(descriptor, select.POLLIN)
        while not came_s and (reads, select.POLLIN) not in poll.poll():
            os.read(watch, 65536)
            if any(_has_data(name) for name in folder.iterdir()):
                came_s.append(time.monotonic())

    watching = threading.Thread(target=run)
    watching.start()
    try:
        yield came_s
    finally:
        os.write(writes, b"\0")
        watching.join()
        for descriptor in (watch, reads, writes):
            os.close(descriptor)
    if not came_s:
        raise SystemExit(f"nothing came in {folder}")


def _has_data(name: Path) -> bool:
    with contextlib.suppress(OSError):  # it was renamed just now
        return any(name.read_bytes())
    return False


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say whether the first byte comes soon enough: by medians."""
    medians = {(each["path"], each["what"]): Spread(each["seconds"]).median for each in stored}
    for path in dict.fromkeys(path for path, _ in medians):
        most_s = medians[path, PYTHON] + ROUND_TRIPS * RTTS_S[path]
        first_s = medians[path, FIRST]
        limit = f"{path}: first byte within ssh, a start of Python there and {ROUND_TRIPS} round trips"
        yield Verdict(limit, f"{first_s:.2f} s, {most_s:.2f} s", first_s <= most_s)


if __name__ == "__main__":
    harness.run_row(SshStart(), judge)
