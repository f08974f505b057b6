"""What each path of a copy with a controller has, beside what a copy over that path alone has there.

    mpx lab simulate python bench/path_by_path.py

*thesis-a* has four paths of 100 Mbit/s without a delay, and once more with 30 ms: a BBR stream is on the
second and a CUBIC stream on the fourth, which fill them before the copy begins, and the others are empty.
*uneven* has two paths, of 60 Mbit/s and 50 ms beside BBR, and of 150 Mbit/s and 20 ms beside CUBIC. Uploads
to `mpx serve`, from 15 to 50 s after the first byte. `--effort full`: three turns, in each of which the
neighbours are some seconds older.

Goals: in the median of the turns each path has at least 0.95 of what the copy over that path alone has, an
empty one of its rate; and the streams beside BBR end on BBR, all others on CUBIC.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import harness
from figures import Spread, Verdict
from mpx_lab.lab import Lab
from mpx_lab.mpx_server import mpx_server
from mpx_lab.own_controller import LOG, OWN
from mpx_lab.state import folder_of
from mpx_lab.topologies import SHORT_QUEUE_BYTES
from mpx_lab.topology import Link, Topology, wan
from mpx_lab.traffic.background import Background
from multipath_copy import copying

LAB_ID = "by-path"
SPARSE_BYTES = 20 * 10**9
SETTLES_S, LATER_S = 20.0, 3.7  # how old neighbours are at least, and by how much more in each turn
LASTS_S, FROM_S, TO_S = 60.0, 15.0, 50.0
TURNS = {"quick": 1, "full": 3}
PAYLOAD_SHARE = 1448 / 1514
CUBIC, BBR = "cubic", "bbr"
KEPT = 0.95


@dataclass(frozen=True)
class OnePath:
    """A path, and the congestion control of the stream beside it (empty: there is none)."""

    rate_bps: int
    rtt_s: float
    beside: str = ""

    def link(self, a: str, b: str) -> Link:
        """Return its bottleneck; without a delay it has the queue of a local testbed."""
        if self.rtt_s:
            return wan(a, b, self.rate_bps, self.rtt_s, name=f"{a}-{b}")
        return Link(a, b, rate_bps=self.rate_bps, queue_bytes=SHORT_QUEUE_BYTES)


@dataclass(frozen=True)
class Had:
    """A path of a copy in one turn: its goodput, that of a copy over it alone, what streams ended on."""

    network: str
    turn: int
    path: int
    beside: str
    rate_bps: int
    bps: float
    alone_bps: float | None  # None: of empty paths, which are held against their rate
    congestion: str
    alone_congestion: str
    switched_s: Sequence[float]  # when the congestion control changed

    @property
    def share(self) -> float:
        """Of what the copy over this path alone had, or of the rate."""
        return self.bps / (self.alone_bps or self.rate_bps * PAYLOAD_SHARE)


def _four(rtt_s: float) -> Sequence[OnePath]:
    return tuple(OnePath(100_000_000, rtt_s, beside) for beside in ("", BBR, "", CUBIC))


NETWORKS: Mapping[str, Sequence[OnePath]] = MappingProxyType(
    {
        "thesis-a": _four(0.0),
        "thesis-a, 30 ms": _four(0.030),
        "uneven": (OnePath(60_000_000, 0.050, BBR), OnePath(150_000_000, 0.020, CUBIC)),
    }
)


class PathByPath(harness.Row[Sequence[Had]]):
    """See the head of this file."""

    name = "path-by-path"
    folder = "reports/path-by-path"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the choice of networks."""
        super().arguments(parser)
        parser.add_argument("--network", choices=tuple(NETWORKS), action="append", help="only these")

    def results(self, options: argparse.Namespace) -> Sequence[Had]:
        """Copy over all networks, and print the table."""
        harness.require_root()
        found: list[Had] = []
        for network in options.network or NETWORKS:
            for turn in range(1, TURNS[options.effort] + 1):
                found += _turn(network, turn)
                sys.stderr.write(
                    "".join(f"{had}\n" for had in found if (had.network, had.turn) == (network, turn))
                )
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Sequence[Had]) -> Sequence[str]:
        """Each path: Mbit/s, alone, share, congestion control, when it was switched."""
        lines = [
            "| network | path | beside | Mbit/s | alone | share | ends on | alone | switched after, s |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for (network, path), runs in _by_path([asdict(had) for had in results]).items():
            first, alone = runs[0], [run["alone_bps"] / 1e6 for run in runs if run["alone_bps"]]
            cells = (
                network,
                str(path),
                first["beside"] or "-",
                f"{Spread([run['bps'] / 1e6 for run in runs]):.1f}",
                f"{Spread(alone):.1f}" if alone else "-",
                f"{Spread([Had(**run).share for run in runs]):.2f}",
                ", ".join(run["congestion"] for run in runs),
                ", ".join(run["alone_congestion"] for run in runs) if alone else "-",
                "; ".join(", ".join(f"{at_s:.0f}" for at_s in run["switched_s"]) or "-" for run in runs),
            )
            lines.append(f"| {' | '.join(cells)} |")
        return lines

    def measured(self, results: Sequence[Had]) -> list[dict[str, Any]]:
        """Return all paths, as JSON holds them."""
        return [asdict(had) for had in results]

    def draw(self, results: Sequence[Had], axes: Any) -> None:
        """The share of each path."""
        axes.axvline(KEPT, linewidth=0.5)
        names = [f"{had.network}: {had.path} {had.beside}" for had in results]
        axes.plot([had.share for had in results], names, "o")
        axes.set_xlabel("goodput over that of a copy over this path alone")


def _by_path(stored: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], list[Mapping[str, Any]]]:
    found: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for each in stored:
        found.setdefault((each["network"], each["path"]), []).append(each)
    return found


def _topology(paths: Sequence[OnePath]) -> Topology:
    """Return src and dst with these paths between them, by s2, s3, and so on, and a pair of hosts on each."""
    switches = ("s1", *(f"s{number}" for number in range(2, len(paths) + 3)))
    links = [Link("src", "s1"), Link(switches[-1], "dst")]
    pairs = [number for number, path in enumerate(paths) if path.beside]
    for switch, path in zip(switches[1:], paths, strict=False):
        links += [path.link("s1", switch), Link(switch, switches[-1])]
    for number in pairs:
        links += [Link(f"n{number}", "s1"), Link(switches[1 + number], f"m{number}")]
    sources, sinks = (tuple(f"{side}{number}" for number in pairs) for side in "nm")
    return Topology("by-path", ("src", *sources), ("dst", *sinks), tuple(links), switches)


def _turn(network: str, turn: int) -> Iterator[Had]:
    paths = NETWORKS[network]
    together = _copied(paths, turn, "--controller")
    for number, path in enumerate(paths):
        alone = _copied([path], turn)[0] if path.beside else None
        bps, congestion, switched_s = together[number]
        yield Had(
            network,
            turn,
            number,
            path.beside,
            path.rate_bps,
            bps,
            alone[0] if alone else None,
            congestion,
            alone[1] if alone else "",
            switched_s,
        )


def _copied(paths: Sequence[OnePath], turn: int, *options: str) -> list[tuple[float, str, Sequence[float]]]:
    """Copy; return of each path its goodput, what its streams ended on, and when that changed."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mpx-bench-")))
        lab = stack.enter_context(Lab.up(_topology(paths), LAB_ID, controller=OWN))
        for number, path in enumerate(paths):
            if path.beside:
                _beside(stack, lab, number, path.beside, folder)
        with (folder / "file").open("wb") as file:
            file.truncate(SPARSE_BYTES)
        (folder / "served").mkdir()
        url = stack.enter_context(mpx_server(lab.host("dst"), folder / "served"))
        time.sleep(SETTLES_S + turn * LATER_S)
        _copy_for(LASTS_S, lab, folder, f"{url}/file", bool(options))
        told = json.loads((folder / "report.json").read_text())
        log = (folder_of(LAB_ID) / LOG).read_text() if options else ""
    names = {}
    for name, route in re.findall(r": path (\d+) \(1-(\d+)-\d+\): n =", log):
        names[int(route) - 2] = name
    return [_of(told, names[number] if options else "default") for number in range(len(paths))]


def _beside(stack: contextlib.ExitStack, lab: Lab, number: int, congestion: str, folder: Path) -> None:
    source, sink = lab.host(f"n{number}"), lab.host(f"m{number}")
    flows = folder / f"flows-{number}"
    flows.mkdir()
    spec = f"tcp(congestion={congestion})"
    beside = Background(spec, f"beside-{number}", source, sink, sink.addresses[0], flows, time.monotonic())
    stack.enter_context(beside)


def _copy_for(lasts_s: float, lab: Lab, folder: Path, url: str, steered: bool) -> None:
    """Copy for so long, over all paths or over the only one."""
    words = ["--checksum", "none", "--no-history", str(folder / "file"), url]
    if steered:
        process = copying(lab, folder, words)
    else:
        mpx = [sys.executable, "-m", "mpx", "copy", "-q", "--report", str(folder / "report.json")]
        environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
        process = lab.host("src").popen([*mpx, *words], stderr=subprocess.PIPE, env=environment)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=lasts_s)
    process.send_signal(signal.SIGINT)
    process.communicate()


def _of(report: Mapping[str, Any], path: str) -> tuple[float, str, Sequence[float]]:
    arrived, seconds, switched_s, before = 0, 0.0, [], None
    for interval in report["intervals"]:
        if interval["path"] != path:
            continue
        if interval["from_s"] >= FROM_S and interval["until_s"] <= TO_S:
            arrived += interval["arrived_bytes"]
            seconds += interval["until_s"] - interval["from_s"]
        if before not in (None, interval["congestion"]):
            switched_s.append(interval["until_s"])
        before = interval["congestion"]
    return arrived * 8 / seconds, str(before), switched_s


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say what each path keeps of what it has alone, and what its streams ended on."""
    for (network, path), runs in _by_path(stored).items():
        beside = runs[0]["beside"]
        where = f"{network}, path {path}, {f'beside {beside}' if beside else 'empty'}"
        kept = statistics.median(Had(**run).share for run in runs)
        yield Verdict(f"{where}: {KEPT} of the path alone", f"{kept:.2f}", kept >= KEPT)
        expected, ended = beside or CUBIC, [run["congestion"] for run in runs]
        yield Verdict(f"{where}: ends on {expected}", ", ".join(ended), set(ended) == {expected})


if __name__ == "__main__":
    harness.run_row(PathByPath(), judge)
