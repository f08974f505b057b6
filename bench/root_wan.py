"""One file from and to XRootD by root:// across a wide-area network: mpx beside xrdcp.

    mpx lab simulate python bench/root_wan.py [--cases clean ...] [--seeds 1 2 3]
    (needs root, and the server and tools of XRootD)

A path of 60 ms with a queue of one product of bandwidth and delay: 200 Mbit/s, clean and with random losses,
and 1 Gbit/s; 400 MB, with losses 100 MB. No logins, no TLS. Whole commands count, from start to end, and each
file is compared with its source; mpx compares adler32, too, xrdcp nothing.
Goal: both ways `xrdcp -S 4` is not faster, but for a tie (2 %); xrdcp with one connection is shown.
"""

import argparse
import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import harness
import web_tools
from figures import Verdict, machine
from install_peers import find_peer
from mpx_lab.cleanup import end
from mpx_lab.lab_host import LabHost
from wan_runs import DOWN, TIE, UP, WanRow, WanRun, ends, lose, medians, wan_path
from web.servers.xrootd import ACCOUNT, AS_ACCOUNT, SUM

RTT_S, MBIT = 0.060, 1_000_000
MPX, MPX_FAST, XRDCP_4, XRDCP = web_tools.MPX, web_tools.MPX_FAST, "xrdcp -S 4", "xrdcp"
TOOLS = (MPX, MPX_FAST, XRDCP_4, XRDCP)
LOOK_S, STARTS_S = 0.2, 60.0
_CONFIGURATION = """all.export /
oss.localroot {served}
all.adminpath {state}/admin
all.pidpath {state}/run
xrd.port {port}
xrd.network nodnr
xrootd.chksum max 2 adler32 md5 /bin/sh {state}/sum {served}
"""
PORT = 1094


@dataclass(frozen=True)
class RootCondition:
    """What a path is like, and how much goes over it."""

    rate_bps: int
    file_bytes: int
    loss: float = 0.0


CASES: Mapping[str, RootCondition] = MappingProxyType(
    {
        "clean": RootCondition(200 * MBIT, 400_000_000),
        "0.05 % loss": RootCondition(200 * MBIT, 100_000_000, loss=0.0005),
        "1 Gbit/s": RootCondition(1000 * MBIT, 400_000_000),
    }
)


class RootWan(WanRow):
    """See the head of this file."""

    name = "root-wan"
    folder = "reports/root-wan"
    cases, tools = CASES, TOOLS

    def results(self, options: argparse.Namespace) -> Sequence[WanRun]:
        """Copy with each tool over each path, and print the table."""
        harness.require_root()
        print(machine())
        found: list[WanRun] = []
        for case in options.cases:
            for seed in options.seeds if CASES[case].loss else options.seeds[:1]:
                for way in options.ways:
                    # The other kernel sends what comes down, whatever the policy.
                    tools = [tool for tool in options.tools if way == UP or tool != MPX_FAST]
                    with harness.work_folder("root-wan", "/dev/shm", 0o755) as folder:
                        found += _measure(case, way, seed, tools, folder)
        print("\n".join(self.table(found)))
        return found


def _measure(case: str, way: str, seed: int, tools: Sequence[str], folder: Path) -> list[WanRun]:
    served, here = folder / "served", folder / "here"
    for made in (served, here):
        made.mkdir()
    condition, found = CASES[case], []
    source = (served if way == DOWN else here) / "file"
    with source.open("wb") as file:
        file.truncate(condition.file_bytes)
    with wan_path("root-wan", condition.rate_bps, RTT_S) as lab, contextlib.ExitStack() as stack:
        far, near = ends(lab)
        lose(lab, way, condition.loss, seed)
        url = stack.enter_context(xrootd(far, near, folder, served))
        for number, tool in enumerate(tools):
            name = f"got{number}"
            target = (here if way == DOWN else served) / name
            places = [f"{url}/file", str(target)] if way == DOWN else [str(source), f"{url}/{name}"]
            state = folder / f"state{number}"
            state.mkdir()
            began_s = time.monotonic()
            near.run(
                command(tool, places, state),
                stdout=subprocess.DEVNULL,
                env=web_tools.environment(),
                check=True,
            )
            found.append(WanRun(case, way, tool, seed, condition.file_bytes, time.monotonic() - began_s))
            subprocess.run(["cmp", source, target], check=True)
            target.unlink()
            sys.stderr.write(f"{found[-1]}\n")
    return found


def command(tool: str, ends: Sequence[str], state: Path) -> list[str]:
    """Return how people copy one file with a tool."""
    if tool in (MPX, MPX_FAST):
        return [*web_tools.mpx(state), *(("--policy", "fast") if tool == MPX_FAST else ()), *ends]
    return ["xrdcp", "--nopbar", "--silent", *(("-S", "4") if tool == XRDCP_4 else ()), *ends]


@contextlib.contextmanager
def xrootd(far: LabHost, near: LabHost, folder: Path, served: Path) -> Iterator[str]:
    """Run XRootD on a host, from when it answers the other one; yields its URL."""
    state = folder / "xrootd"
    for name in ("admin", "run"):
        (state / name).mkdir(parents=True)
    configuration = state / "xrootd.cfg"
    configuration.write_text(_CONFIGURATION.format(served=served, state=state, port=PORT))
    (state / "sum").write_text(SUM)  # what it computes itself it would keep where tmpfs keeps nothing
    for path in (served, *served.iterdir(), state, *state.rglob("*")):
        shutil.chown(path, ACCOUNT, ACCOUNT)
    words = [*AS_ACCOUNT, find_peer("xrootd"), "-c", str(configuration), "-l", str(state / "log")]
    server = f"root://{far.addresses[0]}:{PORT}"
    with far.popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=state) as process:
        try:
            until_s = time.monotonic() + STARTS_S
            ask = ["xrdfs", server, "query", "config", "version"]
            while near.run(ask, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
                assert time.monotonic() < until_s, f"XRootD does not start: {(state / 'log').read_text()}"
                time.sleep(LOOK_S)  # a port has no event for who will listen there
            yield f"{server}/"
        finally:
            end([process.pid], 5.0)


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached: by medians."""
    for (case, way), median in medians(stored).items():
        if MPX in median and XRDCP_4 in median:
            share = median[MPX] / median[XRDCP_4]
            yield Verdict(f"{case}, {way}: mpx as fast as {XRDCP_4}", f"{share:.3f}", share >= 1 / TIE)


if __name__ == "__main__":
    harness.run_row(RootWan(), judge)
