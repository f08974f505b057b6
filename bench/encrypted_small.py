"""Many small files with encryption: mpx over `mpx://` and `ssh://`, tar through ssh, and rsync.

    mpx lab simulate python bench/encrypted_small.py        (needs root, sshd and rsync)
    sudo .venv/3.11/bin/python bench/encrypted_small.py      the same in real time

10,000 files of 10 kB across a path of 200 Mbit/s and 60 ms, in both directions, in turns. Whole commands
count, from start to end; mpx, at both ends, compares every file and syncs it, the others do neither.
Goal: at most 1.1 of what each of the others takes.
"""

import argparse
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from mpx_lab.lab_host import LabHost
from mpx_lab.private_sshd import HOST, private_sshd
from mpx_lab.topology import Topology, wan
from race_loopback import MPX

RATE_BPS, RTT_S = 200_000_000, 0.060
FILE_BYTES = 10_000
MOST = 1.1
RUNS = {"quick": 1, "full": 5}
UP, DOWN = "up", "down"
TLS, SSH, TAR, RSYNC = "mpx://", "ssh://", "tar through ssh", "rsync -a"

Results = Mapping[tuple[str, str], Sequence[float]]  # seconds, by tool and direction


class EncryptedSmall(harness.Row[Results]):
    """See the head of this file."""

    name = "encrypted-small"
    folder = "reports/encrypted-small"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add how many files there are."""
        super().arguments(parser)
        parser.add_argument("--files", type=int, default=10_000)

    def results(self, options: argparse.Namespace) -> Results:
        """Copy with each tool in both directions, and print the table."""
        harness.require_root()
        print(machine())
        found: dict[tuple[str, str], list[float]] = {}
        link = wan("src", "dst", rate_bps=RATE_BPS, rtt_s=RTT_S)
        with (
            harness.work_folder("encrypted-small", "/tmp") as folder,
            Lab.up(Topology("encrypted-small", ("src",), ("dst",), links=(link,)), "encrypted-small") as lab,
            served(lab.host("dst"), folder) as url,
        ):
            (folder / "source").mkdir()
            for number in range(options.files):
                (folder / "source" / f"f{number:07}").write_bytes(os.urandom(FILE_BYTES))
            for _ in range(RUNS[options.effort]):
                for tool in (TLS, SSH, TAR, RSYNC):
                    for direction in (UP, DOWN):
                        took_s = _timed(lab.host("src"), folder, _words(tool, direction, folder, url))
                        found.setdefault((tool, direction), []).append(took_s)
                        sys.stderr.write(f"{tool}, {direction}: {took_s:.2f} s\n")
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Results) -> Sequence[str]:
        """Each tool, in seconds."""
        lines = ["| tool | direction | s |", "|---|---|---|"]
        return lines + [f"| {' | '.join(case)} | {Spread(took_s):.2f} |" for case, took_s in results.items()]

    def measured(self, results: Results) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [
            {"tool": tool, "direction": direction, "seconds": list(took_s)}
            for (tool, direction), took_s in results.items()
        ]

    def draw(self, results: Results, axes: Any) -> None:
        """A bar for each tool and direction."""
        axes.barh([", ".join(case) for case in results], [Spread(each).median for each in results.values()])
        axes.set_xlabel("seconds")


@contextlib.contextmanager
def served(host: LabHost, folder: Path) -> Iterator[str]:
    """Have an sshd and `mpx serve` at a host; yields the URL of the latter (its token: MPX_TOKEN)."""
    os.environ["MPX_STATE_DIR"] = str(folder / "state")
    made = subprocess.run([MPX, "token", "create", "--write"], check=True, capture_output=True, text=True)
    os.environ["MPX_TOKEN"] = made.stdout.strip()
    address = host.addresses[0]
    serve = [MPX, "serve", str(folder), "--tls", "--writable", "--host", address, "--port", "0"]

    with (
        private_sshd(
            find_peer("sshd"),
            free_ports(1)[0],
            address=address,
            run=lambda call: namespace.inside(host.netns, call),
        ),
        host.popen(serve, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout
        try:
            yield server.stdout.readline().split()[2]
        finally:
            server.terminate()


def _words(tool: str, direction: str, folder: Path, url: str) -> list[str]:
    source, target = folder / "source", folder / "target"
    if tool == TLS:
        ends = [str(source), url + target.name] if direction == UP else [url + source.name, str(target)]
        return [MPX, "copy", "-q", "-r", *ends]
    ends = [str(source), f"{HOST}:{target}"] if direction == UP else [f"{HOST}:{source}", str(target)]
    if tool == SSH:
        return [MPX, "copy", "-q", "-r", "--remote-mpx", MPX, *ends]
    if tool == RSYNC:
        return ["rsync", "-a", f"{ends[0]}/", ends[1]]
    pack = shlex.join(["tar", "-C", str(source), "-cf", "-", "."])
    unpack = f"mkdir {target} && {shlex.join(['tar', '-C', str(target), '-xf', '-'])}"
    far, near = (unpack, pack) if direction == UP else (pack, unpack)
    over = shlex.join(["ssh", HOST, far])
    return ["sh", "-c", f"{near} | {over}" if direction == UP else f"{over} | ({near})"]


def _timed(host: LabHost, folder: Path, words: Sequence[str]) -> float:
    target = folder / "target"
    began_s = time.monotonic()
    host.run(words, stdout=subprocess.DEVNULL, env=dict(os.environ), check=True)
    took_s = time.monotonic() - began_s
    same = subprocess.run(["diff", "-r", folder / "source", target], stdout=subprocess.DEVNULL, check=False)
    if same.returncode:
        raise SystemExit(f"{shlex.join(words)}: {target} is not the source")
    shutil.rmtree(target)
    return took_s


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached: by medians."""
    medians = {(each["tool"], each["direction"]): Spread(each["seconds"]).median for each in stored}
    for tool in (TLS, SSH):
        for rival in (TAR, RSYNC):
            for direction in (UP, DOWN):
                ratio = medians[tool, direction] / medians[rival, direction]
                yield Verdict(
                    f"{tool}, {direction}: at most {MOST:g} of {rival}", f"{ratio:.2f}", ratio <= MOST
                )


if __name__ == "__main__":
    harness.run_row(EncryptedSmall(), judge)
