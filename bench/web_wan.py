"""One file from and to nginx, or Apache, across a wide-area network: mpx beside aria2, curl and rclone.

    mpx lab simulate python bench/web_wan.py [--cases clean ...] [--seeds 1 2 3] [--server apache]
    (needs root and the tools)

200 Mbit/s and 60 ms with a queue of one product of bandwidth and delay: clean, with random losses, beside a
CUBIC and beside a BBR stream. 400 MB down, where the server's kernel sends; 100 MB up, where ours does. Whole
commands count, from start to end, and each file is compared with its source. The stream beside is begun anew
for each, as it has little for long once others have taken its place.
Goals: down nobody is faster, but for a tie (2 %); beside others that is asked of the default, which leaves
them their part, and of `--policy fast`; up at least 1.3 times the best of the others where there is loss or
BBR.
"""

import argparse
import contextlib
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
from mpx_lab.lab_host import LabHost
from mpx_lab.traffic.background import Background
from wan_runs import DOWN, TIE, UP, WanRow, WanRun, ends, lose, medians, wan_path
from web_tools import ARIA2, ARIA2_16, CURL, MPX, MPX_FAST, NGINX, RCLONE, SERVERS, WORK_FOLDERS

RATE_BPS, RTT_S = 200_000_000, 0.060
SIZES = MappingProxyType({DOWN: 400_000_000, UP: 100_000_000})
OURS = (MPX, MPX_FAST)
TOOLS = MappingProxyType({DOWN: (*OURS, ARIA2_16, ARIA2, CURL, RCLONE), UP: (*OURS, CURL, RCLONE)})
MUCH = 1.3
CUBIC, BBR = "tcp(congestion=cubic)", "tcp(congestion=bbr)"
# Simulated: what is beside fills the link, and is met elsewhere on its course with each seed.
SETTLES_S, PHASES = 10.0, 8


@dataclass(frozen=True)
class Condition:
    """What a path is like."""

    loss: float = 0.0
    beside: str = ""


CASES: Mapping[str, Condition] = MappingProxyType(
    {
        "clean": Condition(),
        "0.05 % loss": Condition(loss=0.0005),
        "0.5 % loss": Condition(loss=0.005),
        "beside CUBIC": Condition(beside=CUBIC),
        "beside BBR": Condition(beside=BBR),
    }
)


class WebWan(WanRow):
    """See the head of this file."""

    name = "web-wan"
    folder = "reports/web-wan"
    cases, tools = CASES, TOOLS[DOWN]

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add which server."""
        super().arguments(parser)
        parser.add_argument("--server", choices=SERVERS, default=NGINX)

    def results(self, options: argparse.Namespace) -> Sequence[WanRun]:
        """Copy with each tool over each path, and print the table."""
        harness.require_root()
        print(machine())
        found: list[WanRun] = []
        for case in options.cases:
            for seed in options.seeds if CASES[case] != Condition() else options.seeds[:1]:
                for way in options.ways:
                    with harness.work_folder("web-wan", WORK_FOLDERS[options.server], 0o755) as folder:
                        tools = [tool for tool in TOOLS[way] if tool in options.tools]
                        found += _measure(case, way, seed, tools, options.server, folder)
        print("\n".join(self.table(found)))
        return found


def _measure(case: str, way: str, seed: int, tools: Sequence[str], server: str, folder: Path) -> list[WanRun]:
    served, here = folder / "served", folder / "here"
    for made in (served, here):
        made.mkdir()
    source = (served if way == DOWN else here) / "file"
    with source.open("wb") as file:
        file.truncate(SIZES[way])
    condition, found = CASES[case], []
    with wan_path("web-wan", RATE_BPS, RTT_S) as lab, contextlib.ExitStack() as stack:
        far, near = ends(lab)
        lose(lab, way, condition.loss, seed)
        url = stack.enter_context(SERVERS[server](far, folder, served))
        for number, tool in enumerate(tools):
            target = here / "got" if way == DOWN else served / f"got{number}"
            state = folder / f"state{number}"
            state.mkdir()
            if way == DOWN:
                words = web_tools.fetch(tool, f"{url}/file", target, state)
            else:
                words = web_tools.store(tool, source, url, target.name, state)
            sender = (far, near) if way == DOWN else (near, far)
            with _others(condition.beside, sender, state, SETTLES_S + seed % PHASES):
                found.append(WanRun(case, way, tool, seed, SIZES[way], _timed(near, words), server))
            subprocess.run(["cmp", source, target], check=True)
            target.unlink()
            sys.stderr.write(f"{found[-1]}\n")
    return found


@contextlib.contextmanager
def _others(spec: str, ends: tuple[LabHost, LabHost], state: Path, settles_s: float) -> Iterator[None]:
    """Have what is beside run while in the `with` block, and for some time before."""
    if not spec:
        yield
        return
    flows = state / "flows"
    flows.mkdir()
    with Background(spec, "beside", *ends, ends[1].addresses[0], flows, time.monotonic()):
        time.sleep(settles_s)  # of the simulated clock
        yield


def _timed(host: LabHost, words: Sequence[str]) -> float:
    began_s = time.monotonic()
    host.run(words, stdout=subprocess.DEVNULL, env=web_tools.environment(), check=True)
    return time.monotonic() - began_s


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached: by medians."""
    for (case, way), median in medians(stored).items():
        best = max(value for tool, value in median.items() if tool not in OURS)
        if way == DOWN:
            for ours in OURS if CASES[case].beside else (MPX,):
                if ours in median:
                    share = median[ours] / best
                    yield Verdict(
                        f"{case}, down: {ours} as fast as the best", f"{share:.3f}", share >= 1 / TIE
                    )
            continue
        share = median[MPX] / best
        if CASES[case].loss or CASES[case].beside == BBR:
            yield Verdict(f"{case}, up: at least {MUCH:g} of the best", f"{share:.2f}", share >= MUCH)


if __name__ == "__main__":
    harness.run_row(WebWan(), judge)
