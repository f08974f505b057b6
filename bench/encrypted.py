"""How fast encrypted copies are on this machine: mpx inside TLS, a C peer on the same libssl, and scp.

    .venv/3.11/bin/python bench/encrypted.py        (needs sshd, scp, a C compiler and the headers of OpenSSL)

Loopback, tmpfs, 4 streams, both ends here. Inside TLS (`mpx://`) the goodput is that of the report, without
the start of the programs; the C peer's is that of both its processes, from start to end. Over ssh whole
commands count. Rounds are interleaved. Goals: 0.8 of the C peer in both directions; over ssh 2 times scp with
its default cipher, and 1.5 times scp with aes128-gcm.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "interop")]

import harness
from figures import Spread, Verdict, machine
from free_ports import free_ports
from interop.sshd import HOST, private_sshd
from race_loopback import MPX, make

from mpx.net.self_signed import self_signed

STREAMS = 4
SIZES = {"quick": 2 << 30, "full": 4 << 30}
RUNS = {"quick": 3, "full": 7}
C, TLS, SSH, SCP, GCM = "C peer", "mpx://", "ssh://", "scp", "scp, aes128-gcm"
UP, DOWN = "up", "down"
GOALS = ((TLS, C, 0.8), (SSH, SCP, 2.0), (SSH, GCM, 1.5))  # who, than whom, how many times as fast

Results = Mapping[tuple[str, str], Sequence[float]]  # bytes/s, by tool and direction


class Encrypted(harness.Row[Results]):
    """See the head of this file."""

    name = "encrypted"
    folder = "reports/encrypted"

    def results(self, options: argparse.Namespace) -> Results:
        """Copy with each tool in both directions, and print the table."""
        print(machine(None))
        found: dict[tuple[str, str], list[float]] = {}
        with harness.work_folder("encrypted") as folder, ExitStack() as stack:
            for _ in range(RUNS[options.effort]):
                for case, goodput in _round(folder, SIZES[options.effort], stack):
                    found.setdefault(case, []).append(goodput)
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Results) -> Sequence[str]:
        """Each tool, in MB/s."""
        lines = ["| tool | direction | MB/s |", "|---|---|---|"]
        return lines + [
            f"| {' | '.join(case)} | {Spread([each / 1e6 for each in goodputs]):.0f} |"
            for case, goodputs in results.items()
        ]

    def measured(self, results: Results) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [
            {"tool": tool, "direction": direction, "goodput": list(goodputs)}
            for (tool, direction), goodputs in results.items()
        ]

    def draw(self, results: Results, axes: Any) -> None:
        """A bar for each tool and direction."""
        names = [", ".join(case) for case in results]
        axes.barh(names, [Spread(goodputs).median / 1e6 for goodputs in results.values()])
        axes.set_xlabel("MB/s")


def _round(folder: Path, size_bytes: int, stack: ExitStack) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield what each tool reached, once in each direction."""
    tools = _prepared(folder, size_bytes, stack)
    source, target = folder / "source", folder / "target"
    for tool, copy in tools.items():
        for direction in (UP, DOWN):
            yield (tool, direction), copy(source, target, direction)
            if target.stat().st_size != size_bytes:
                raise SystemExit(f"{tool}, {direction}: the copy is not whole")
            target.unlink()


Copy = Callable[[Path, Path, str], float]
_TOOLS: dict[str, Copy] = {}


def _prepared(folder: Path, size_bytes: int, stack: ExitStack) -> dict[str, Copy]:
    """Return how each tool copies; servers run until `stack` ends."""
    if _TOOLS:
        return _TOOLS
    make(folder / "source", size_bytes)
    os.environ["MPX_STATE_DIR"] = str(folder / "state")
    url = stack.enter_context(_token_server(folder))
    stack.enter_context(private_sshd())
    peer = _c_peer(folder)

    def timed(*words: object) -> float:
        began_s = time.perf_counter()
        subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
        return size_bytes / (time.perf_counter() - began_s)

    def over_ssh(*words: object) -> Copy:
        def copy(source: Path, target: Path, direction: str) -> float:
            ends = (source, f"{HOST}:{target}") if direction == UP else (f"{HOST}:{source}", target)
            return timed(*words, *ends)

        return copy

    ours = (MPX, "copy", "-q", "--streams", STREAMS, "--checksum", "none")
    _TOOLS.update(
        {
            C: lambda source, target, _: _between_c(peer, source, target, size_bytes),
            TLS: lambda source, target, direction: _inside_tls(ours, url, source, target, direction),
            SSH: over_ssh(*ours, "--remote-mpx", MPX),
            SCP: over_ssh("scp", "-q"),
            GCM: over_ssh("scp", "-q", "-c", "aes128-gcm@openssh.com"),
        }
    )
    return _TOOLS


def _inside_tls(ours: Sequence[object], url: str, source: Path, target: Path, direction: str) -> float:
    report = target.with_name("report")
    ends = (source, url + target.name) if direction == UP else (url + source.name, target)
    words = [str(word) for word in (*ours, "--report", report, *ends)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return float(json.loads(report.read_text())["goodput_bps"]) / 8


class _token_server:  # noqa: N801  a context manager
    """`mpx serve --tls` for a folder, with a token in the environment; yields its URL."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> str:
        made = subprocess.run([MPX, "token", "create", "--write"], check=True, capture_output=True, text=True)
        os.environ["MPX_TOKEN"] = made.stdout.strip()
        words = [MPX, "serve", str(self._folder), "--tls", "--writable", "--port", "0"]
        self._server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout
        return self._server.stdout.readline().split()[2]

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.wait()


def _c_peer(folder: Path) -> Path:
    """Compile the peer, and make its certificate; return its path."""
    source = Path(__file__).with_name("tls_peer.c")
    program = folder / "tls_peer"
    built = ["cc", "-O2", "-o", str(program), str(source), "-lssl", "-lcrypto", "-lpthread"]
    if subprocess.run(built, check=False).returncode:
        raise SystemExit("cannot compile the C peer: install gcc and libssl-dev")
    certificate, key = self_signed("bench", timedelta(days=1))
    (folder / "pem").write_bytes(certificate)
    (folder / "key").write_bytes(key)
    return program


def _between_c(program: Path, source: Path, target: Path, size_bytes: int) -> float:
    port, folder = free_ports(1)[0], program.parent
    common = [str(port), str(STREAMS)]
    receive = [str(program), "receive", *common, str(target), str(size_bytes)]
    with subprocess.Popen(
        [*receive, str(folder / "pem"), str(folder / "key")], stdout=subprocess.PIPE
    ) as receiver:
        assert receiver.stdout
        receiver.stdout.readline()
        began_s = time.perf_counter()
        subprocess.run([str(program), "send", *common, str(source), str(size_bytes)], check=True)
        if receiver.wait():
            raise SystemExit("the C peer failed")
    return size_bytes / (time.perf_counter() - began_s)


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached: by medians."""
    medians = {(each["tool"], each["direction"]): Spread(each["goodput"]).median for each in stored}
    for tool, rival, goal in GOALS:
        for direction in (UP, DOWN):
            ratio = medians[tool, direction] / medians[rival, direction]
            yield Verdict(f"{tool}, {direction}: at least {goal:g} of {rival}", f"{ratio:.2f}", ratio >= goal)


if __name__ == "__main__":
    harness.run_row(Encrypted(), judge)
