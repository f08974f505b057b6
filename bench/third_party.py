"""Copies between two servers that send to each other, beside the two-party copies over the same path.

    mpx lab simulate python bench/third_party.py --servers stock mpx ssh

60 ms and 200 Mbit/s unless said. The file is at one end of the path and goes to the other: sent by mpx there
(up), fetched by mpx at the other end (down), and sent by one server to another (third party): stock Globus
servers, `mpx serve` for who has a token, or what ssh starts. The last one is told to by mpx at the end of the
source, which is a round trip of 60 ms away from the other server, and at a third place that is 60 ms away
from both.

Goal: between servers at least 0.9 of the goodput of the worse of both two-party copies.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import harness
from figures import Spread, Verdict
from free_ports import free_ports
from install_peers import find_peer
from mpx_lab import namespace
from mpx_lab.cleanup import end
from mpx_lab.lab import Lab
from mpx_lab.lab_host import LabHost
from mpx_lab.private_sshd import PrivateSshd, private_sshd
from mpx_lab.shape import Direction
from mpx_lab.stock_server import stock_server
from mpx_lab.topology import Topology, wan

RATE_BPS, RTT_S = 200_000_000, 0.060
LEAST = 0.9
UP, DOWN, BESIDE, FAR = "up", "down", "third party", "third party, from elsewhere"
STOCK, TOKEN, SSH = "stock", "mpx", "ssh"
TURNS = {"quick": 1, "full": 3}
# In simulated time files belong to root, whoever makes them, and several sessions are to open one.
AS_ROOT = ("-anonymous-user", "root", "-allow-root")
MPX = [sys.executable, "-m", "mpx"]
COPY = [*MPX, "copy", "-q"]


@dataclass(frozen=True)
class PathOfCopies:
    """A path, and how much goes over it."""

    size_bytes: int = 600_000_000
    loss: float = 0.0
    window_bytes: int | None = None
    servers: str = STOCK


CASES: Mapping[str, PathOfCopies] = MappingProxyType(
    {
        "clean": PathOfCopies(),
        "clean, 100 MB": PathOfCopies(100_000_000),
        "windows of 64 KiB": PathOfCopies(window_bytes=65535),
        "0.1 % loss": PathOfCopies(loss=0.001),
        **{
            f"{servers}, {case}": replace(path, servers=servers)
            for servers in (TOKEN, SSH)
            for case, path in {
                "clean": PathOfCopies(),
                "clean, 100 MB": PathOfCopies(100_000_000),
                "0.1 % loss": PathOfCopies(loss=0.001),
                "0.1 % loss, 100 MB": PathOfCopies(100_000_000, loss=0.001),
            }.items()
        },
    }
)


@dataclass(frozen=True)
class TimedCopy:
    """One copy: of which case, how, and its seconds from the start of mpx to its end."""

    case: str
    how: str
    took_s: float

    @property
    def goodput_bps(self) -> float:
        """What the whole program carried."""
        return CASES[self.case].size_bytes * 8 / self.took_s


class ThirdParty(harness.Row[Sequence[TimedCopy]]):
    """See the head of this file."""

    name = "third-party"
    folder = "reports/third-party"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """See Row."""
        super().arguments(parser)
        parser.add_argument("--servers", nargs="+", choices=(STOCK, TOKEN, SSH), default=[STOCK])

    def results(self, options: argparse.Namespace) -> Sequence[TimedCopy]:
        """Copy in each way over every path, and print the table."""
        harness.require_root()
        found: list[TimedCopy] = []
        wanted = {case: path for case, path in CASES.items() if path.servers in options.servers}
        for case, conditions in wanted.items():
            for turn in range(TURNS[options.effort]):
                with tempfile.TemporaryDirectory() as folder:
                    found += _measure(case, conditions, Path(folder), f"third-party-{turn}")
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Sequence[TimedCopy]) -> Sequence[str]:
        """Mbit/s of the whole program, by case and way."""
        ways = (UP, DOWN, BESIDE, FAR)
        lines = [f"| path | {' | '.join(ways)} |", "|---" * (len(ways) + 1) + "|"]
        for case in dict.fromkeys(run.case for run in results):
            runs = [
                [run.goodput_bps / 1e6 for run in results if (run.case, run.how) == (case, way)]
                for way in ways
            ]
            lines.append(f"| {case} | {' | '.join(f'{Spread(each):.1f}' for each in runs)} |")
        return lines

    def measured(self, results: Sequence[TimedCopy]) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [asdict(run) for run in results]

    def draw(self, results: Sequence[TimedCopy], axes: Any) -> None:
        """Goodput by case and way."""
        axes.plot(
            [run.goodput_bps / 1e6 for run in results], [f"{run.case}, {run.how}" for run in results], "o"
        )
        axes.set_xlabel("Mbit/s")


def _measure(case: str, conditions: PathOfCopies, folder: Path, name: str) -> list[TimedCopy]:
    folder.chmod(0o755)
    served = folder / "served"
    served.mkdir()
    served.chmod(0o777)
    with (folder / "file").open("wb") as file:
        file.truncate(conditions.size_bytes)
    # Half of the round trip and of the queue is on each half of a path.
    links = tuple(
        wan(host, "middle", rate_bps=RATE_BPS, rtt_s=RTT_S / 2, bdp=2.0, name=f"{host}-middle")
        for host in ("desk", "src", "dst")
    )
    found: list[TimedCopy] = []
    with Lab.up(
        Topology("third-party", ("desk", "src"), ("dst",), switches=("middle",), links=links), name
    ) as lab:
        desk, source, destination = (lab.host(each) for each in ("desk", "src", "dst"))
        if conditions.loss:
            lab.link("src-middle").change(Direction.A_TO_B, loss=conditions.loss, seed=1)
        for host in (source, destination):
            host.set_route(congestion="cubic", window_bytes=conditions.window_bytes)
        with _servers(conditions.servers, source, destination, folder) as (from_url, to_url):
            there, here = f"{from_url}{folder}/file", f"{folder}/file"
            for how, host, names in (
                (UP, source, (here, f"{to_url}{served}/up")),
                (DOWN, destination, (there, f"{served}/down")),
                (BESIDE, source, (there, f"{to_url}{served}/beside")),
                (FAR, desk, (there, f"{to_url}{served}/far")),
            ):
                given = ["--remote-mpx", str(folder / "mpx")] if conditions.servers == SSH else []
                took_s = _timed(host, folder / how.replace(" ", "-"), names, given)
                found.append(TimedCopy(case, how, took_s))
                sys.stderr.write(f"{found[-1]}\n")
    return found


@contextlib.contextmanager
def _servers(kind: str, source: LabHost, destination: LabHost, folder: Path) -> Iterator[tuple[str, str]]:
    """Run a server at both ends, and yield their URLs without a path."""
    with contextlib.ExitStack() as stack:
        if kind == STOCK:
            made = [stock_server(host, folder, AS_ROOT) for host in (source, destination)]
        elif kind == TOKEN:
            state = folder / "serve"
            state.mkdir()
            words = ["env", f"MPX_STATE_DIR={state}", *MPX]
            told = subprocess.run([*words, "token", "create", "--write"], stdout=subprocess.PIPE, check=True)
            os.environ["MPX_TOKEN"] = told.stdout.decode().strip()
            made = [_token_server(host, words) for host in (source, destination)]
        else:
            program = folder / "mpx"
            program.write_text(f'#!/bin/sh\nexport PYTHONPATH={ROOT}\nexec {" ".join(MPX)} "$@"\n')
            program.chmod(0o755)
            first = stack.enter_context(_sshd(source))
            second = stack.enter_context(_sshd(destination))
            with second.client_config.open("a") as settings:  # the client looks here alone
                settings.write(first.client_config.read_text().replace("Host there localhost ", "Host "))
            yield f"ssh://{first.address}", f"ssh://{second.address}"
            return
        yield stack.enter_context(made[0]), stack.enter_context(made[1])


@contextlib.contextmanager
def _token_server(host: LabHost, words: Sequence[str]) -> Iterator[str]:
    """Run `mpx serve` for who has a token, and yield its URL without a path."""
    options = ["/", "--writable", "--host", host.addresses[0], "--port", "0"]
    with host.popen([*words, "serve", *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            found = re.search(r"mpx://[^/\s]+", process.stdout.readline())
            assert found, "mpx serve did not start"
            yield found[0]
        finally:
            end([process.pid], 5.0)


@contextlib.contextmanager
def _sshd(host: LabHost) -> Iterator[PrivateSshd]:
    """Run an sshd on a host."""
    there = partial(namespace.inside, host.netns)
    with private_sshd(find_peer("sshd"), free_ports(1)[0], address=host.addresses[0], run=there) as sshd:
        yield sshd


def _timed(host: LabHost, state: Path, names: tuple[str, str], given: Sequence[str]) -> float:
    between = ["--third-party", "only"] if all("://" in name for name in names) else []
    began_s = time.monotonic()
    host.run(
        ["env", f"MPX_STATE_DIR={state}", *COPY, *given, *between, *names],
        stdout=subprocess.DEVNULL,
        env=dict(os.environ),
        check=True,
    )
    return time.monotonic() - began_s


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached."""
    runs = [TimedCopy(**each) for each in stored]
    for case in dict.fromkeys(run.case for run in runs):
        medians = {
            how: Spread([run.goodput_bps for run in runs if (run.case, run.how) == (case, how)]).median
            for how in (UP, DOWN, BESIDE, FAR)
        }
        for how in (BESIDE, FAR):
            share = medians[how] / min(medians[UP], medians[DOWN])
            yield Verdict(f"{case}, {how}: at least {LEAST:g} of two-party", f"{share:.2f}", share >= LEAST)


if __name__ == "__main__":
    harness.run_row(ThirdParty(), judge)
