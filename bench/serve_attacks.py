"""What a regular client of `mpx serve` notices during attacks. Run by hand.

    .venv/3.11/bin/python bench/serve_attacks.py [--runs 5] [--only WORDS] [--figure FILE] [--results FILE]
    .venv/3.11/bin/python bench/serve_attacks.py --judge FILE

Every run of every attack has a server of its own (a process, as `mpx serve DIR --writable`). A client asks
NOOP every 5 ms, first while nobody else is there and then during the attack; another logs in during the
attack, from the attackers' own address and from another one. Attackers run in a process of low priority, as
they would not be on the server's machine. Judged are, over all runs of an attack: the median of the ratio of
the 99th percentiles of NOOP (at most 10), every login (each has to succeed within 10 s), and the server's
memory, at its peak and after the attack, above what it was before. A run in which the attackers did nothing,
or NOOPs were too few, feeds no verdict, and the bench fails. Exits 1 if a limit was not kept.
"""

import argparse
import math
import multiprocessing
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import serve_attackers
from figures import Spread, Verdict, drawn, machine
from harness import command, run
from raw_client import RawClient

from mpx.errors import UsageError

MOST_RATIO = 10.0  # of the 99th percentile under attack to that of an idle server
MOST_PEAK_MIB, MOST_LEFT_MIB = 512.0, 32.0  # above what the server had before
LOGIN_WITHIN_S, AGAIN_S = 10.0, 0.2
IDLE_S, WARM_S, ATTACK_S, EVERY_S = 2.0, 1.0, 5.0, 0.005
FEWEST_NOOPS = 20  # fewer come of a server that hardly answers, and those are judged by the worst of them
_LEFT_AFTER_S = 3.0


@dataclass(frozen=True)
class AttackRun:
    """What one run saw; milliseconds and MiB."""

    idle_p99_ms: float
    p99_ms: float
    noops: int
    idle_noops: int
    logins: int  # of two: from the attackers' address, and from another
    peak_mib: float
    left_mib: float
    tries: int  # what the attackers did

    @property
    def ratio(self) -> float:
        """How many times longer a NOOP takes."""
        return self.p99_ms / self.idle_p99_ms

    @property
    def is_valid(self) -> bool:
        """Whether it can be judged."""
        return self.tries > 0 and self.idle_noops >= FEWEST_NOOPS and self.noops > 0


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that so large a share of all does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


class Server:
    """A running `mpx serve`, and what the kernel knows of its memory."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.port = port
        self._pid = process.pid

    def mib(self, field: str) -> float:
        """Return VmRSS (now) or VmHWM (at most so far)."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.split(f"{field}:")[1].split()[0]) / 1024


@contextmanager
def serving(root: Path, command: Sequence[str]) -> Iterator[Server]:
    """Run the server under test on a folder."""
    words = [*command, str(root), "--writable", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield Server(process, int(process.stdout.readline().split("127.0.0.1:")[1].split("/")[0]))
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def noops(client: RawClient, seconds: float) -> list[float]:
    """Ask NOOP for so long; return how long each took, in ms."""
    took, until_s = [], time.monotonic() + seconds
    while (began_s := time.monotonic()) < until_s:
        assert client.do("NOOP").code == 200
        took.append((time.monotonic() - began_s) * 1000)
        time.sleep(EVERY_S)
    return took


def can_log_in(port: int, address: str) -> bool:
    """Tell whether a client at an address is let in, that tries again as clients do."""
    until_s = time.monotonic() + LOGIN_WITHIN_S
    while time.monotonic() < until_s:
        if _logs_in(port, address):
            return time.monotonic() < until_s
        time.sleep(AGAIN_S)
    return False


def _logs_in(port: int, address: str) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), LOGIN_WITHIN_S, (address, 0)) as sock:
            file = sock.makefile("rb")
            said = [file.readline()[:3]]
            for line in (b"USER ftp\r\n", b"PASS x\r\n"):
                sock.sendall(line)
                said.append(file.readline()[:3])
    except OSError:
        return False
    return said == [b"220", b"331", b"230"]


def measure(name: str, root: Path, command: Sequence[str]) -> AttackRun:
    """Attack a server of its own once."""
    spawn = multiprocessing.get_context("spawn")
    tries = spawn.Value("Q", 0, lock=False)
    with serving(root, command) as server, RawClient(server.port) as client:
        client.sock.settimeout(120)
        alone = noops(client, IDLE_S)
        before = server.mib("VmRSS")
        attacker = spawn.Process(target=serve_attackers.run, args=(name, server.port, tries), daemon=True)
        attacker.start()
        try:
            until_s = time.monotonic() + 30
            while not tries.value and time.monotonic() < until_s:
                time.sleep(0.01)
            noops(client, WARM_S)
            under = noops(client, ATTACK_S)
            let_in = [can_log_in(server.port, address) for address in ("127.0.0.1", "127.0.0.2")]
        finally:
            attacker.kill()
            attacker.join()
        time.sleep(_LEFT_AFTER_S)
        return AttackRun(
            idle_p99_ms=percentile(alone, 0.99),
            p99_ms=percentile(under, 0.99),
            noops=len(under),
            idle_noops=len(alone),
            logins=sum(let_in),
            peak_mib=server.mib("VmHWM") - before,
            left_mib=server.mib("VmRSS") - before,
            tries=tries.value,
        )


def make_folder() -> Path:
    """Make what is served: a folder of many names, and a file that is larger than anybody reads."""
    root = Path(tempfile.mkdtemp(prefix="mpx-attacks-", dir="/dev/shm"))
    (root / "many").mkdir()
    for number in range(serve_attackers.MANY_NAMES):
        (root / "many" / f"name-of-a-file-{number:08}").touch()
    with (root / "big").open("wb") as file:
        file.truncate(serve_attackers.BIG_BYTES)
    return root


def judge(stored: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Verdict]:
    """Yield the verdicts on all attacks."""
    for name, runs in stored.items():
        yield from judge_attack(name, [AttackRun(**run) for run in runs])


def judge_attack(name: str, runs: Sequence[AttackRun]) -> list[Verdict]:
    """Return the verdicts on an attack; there is one at least."""
    if not runs or not all(run.is_valid for run in runs):
        invalid = sum(not run.is_valid for run in runs)
        return [Verdict(f"{name}: every run is valid", f"{invalid} of {len(runs)} are not", kept=False)]
    ratio = Spread([run.ratio for run in runs])
    peak, left = Spread([run.peak_mib for run in runs]), Spread([run.left_mib for run in runs])
    logins = sum(run.logins for run in runs)
    found = [
        (f"NOOP at P99 within {MOST_RATIO:g} times", f"{ratio:.1f} times", ratio.median <= MOST_RATIO),
        ("others can log in", f"{logins} of {2 * len(runs)}", logins == 2 * len(runs)),
        (f"at most {MOST_PEAK_MIB:g} MiB more", f"{peak:.0f} MiB", peak.worst <= MOST_PEAK_MIB),
        (f"at most {MOST_LEFT_MIB:g} MiB are left", f"{left:.0f} MiB", left.worst <= MOST_LEFT_MIB),
    ]
    return [Verdict(f"{name}: {limit}", measured, kept) for limit, measured, kept in found]


def table(results: dict[str, list[AttackRun]]) -> str:
    """Return a table in Markdown."""
    head = ["attack", "idle P99, ms", "P99 under attack, ms", "times", "logins", "peak, MiB", "left, MiB"]
    rows = [head, ["---"] * len(head)]
    for name, runs in results.items():
        if runs:
            columns = [Spread([getattr(run, field) for run in runs]) for field in _FIELDS]
            idle, under, ratio, peak, left = columns
            logins = f"{sum(run.logins for run in runs)} of {2 * len(runs)}"
            cells = [f"{idle:.2f}", f"{under:.2f}", f"{ratio:.1f}", logins, f"{peak:.0f}", f"{left:.0f}"]
            rows.append([name, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


_FIELDS = ("idle_p99_ms", "p99_ms", "ratio", "peak_mib", "left_mib")


def draw(results: dict[str, list[AttackRun]], axes: Any) -> None:
    """Draw the ratios, each run a dot, and the limit."""
    for row, runs in enumerate(results.values()):
        axes.plot([run.ratio for run in runs], [row] * len(runs), "o", color="tab:blue", alpha=0.6)
    axes.axvline(MOST_RATIO, color="tab:red", linestyle="--")
    axes.set_yticks(range(len(results)), list(results))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("NOOP at P99 under attack / of an idle server (limit dashed)")


def measure_all(options: argparse.Namespace) -> dict[str, list[AttackRun]]:
    """Run every attack several times, interleaved."""
    names = [n for n in serve_attackers.ATTACKS if any(word in n for word in options.only.split(","))]
    if not names:
        raise UsageError(f"no attack has any of {options.only!r} in its name")
    results: dict[str, list[AttackRun]] = {name: [] for name in names}
    print(machine(), flush=True)
    for number in range(options.runs):
        for name in names:
            root = make_folder()
            try:
                results[name].append(measure(name, root, options.serve.split()))
            finally:
                shutil.rmtree(root, ignore_errors=True)
            print(f"run {number + 1}: {name}: {results[name][-1]}", flush=True)
    return results


def show(stored: Mapping[str, Sequence[Mapping[str, Any]]], options: argparse.Namespace) -> None:
    """Print the table, and draw the figure where one was asked for."""
    results = {name: [AttackRun(**run) for run in runs] for name, runs in stored.items()}
    print(table(results))
    if options.figure:
        print(drawn(options.figure, lambda axes: draw(results, axes)))


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="attacks whose names hold these words, divided by commas")
    parser.add_argument("--serve", default=f"{sys.executable} -m mpx.serve", help="the server under test")
    parser.add_argument("--figure", type=Path)
    run(parser, measure_all, judge, show)
