"""How long the streams of a failed path stall: `mpx copy --controller`, both directions. Real time.

    sudo .venv/3.11/bin/python bench/controller_lost_path.py [--quick]

Four paths of 20 Mbit/s with round trips of 20 and of 100 ms and queues of one BDP. While a copy runs one path
dies: its link loses its carrier, which its switches see, or begins to lose everything, which nobody is told.
What its streams had under way waits until they are on another path. Told is the longest time in which one of
them waited for an acknowledgement, as the kernel of its sender says; timeouts of TCP are part of it. Beside
it the same of all streams on the other paths, which have pauses of their own. Five runs of each (quick: two).
Exits 1 if in any run a stream of the lost path waits for more than a second.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from controller_paths import ask, wait_found
from figures import Spread, Verdict, machine
from harness import command, run
from mpx_lab.lab import Lab
from mpx_lab.mpx_server import mpx_server
from mpx_lab.namespace import inside
from mpx_lab.own_controller import OWN
from mpx_lab.steps import SWITCHES, netns_name
from mpx_lab.topologies import THESIS_A
from mpx_lab.topology import Topology, wan
from mpx_lab.traffic.socket_table import SocketTable
from mpx_lab.traffic.tcp_samples import TcpSample
from multipath_copy import copying

RATE_BPS = 20_000_000
SIZE = 100_000_000
DIES = 2  # the place of the path, and ...
LINK = "s1-s4"  # ... a link of it
UNTIL_BYTES = 8_000_000  # of the path, when it dies
LOOKED_S = 5.0
LOOK_S = 0.01
GONE_S = 1.0
CUBIC = ("--congestion", "cubic")
ASKED_BYTES = 20_000  # a connection with less is a control session
ROUND_TRIPS_S = (0.02, 0.1)
WAYS = {"carrier lost": False, "loses everything": True}


@dataclass
class StreamProgress:
    """One connection at its sender: how much is acknowledged, and for how long it waited for more at most."""

    path: int
    bytes: int = 0
    since_s: float = 0.0  # when it last made progress, or had nothing in flight
    longest_s: float = 0.0

    def look(self, now_s: float, sample: TcpSample) -> None:
        """Record its state now."""
        self.longest_s = max(self.longest_s, now_s - self.since_s) if self.since_s else 0.0
        if sample.bytes_acked > self.bytes or not sample.unacked_packets:
            self.bytes, self.since_s = sample.bytes_acked, now_s


def measure(options: argparse.Namespace) -> dict[str, Sequence[float]]:
    """Lose a path at each RTT, in each direction, and print a table."""
    times = 2 if options.quick else 5
    print(machine())
    print("\n| RTT | direction | the path | its streams, s: median (min to max) | others |")
    print("|---|---|---|---|---|")
    measured = {}
    for rtt_s in ROUND_TRIPS_S:
        with Lab.up(long(THESIS_A, rtt_s), "bench-lost", controller=OWN) as lab:
            for upload in (True, False):
                for way, is_silent in WAYS.items():
                    runs = [lost(lab, upload=upload, is_silent=is_silent) for _ in range(times)]
                    found, others = Spread([run[0] for run in runs]), Spread([run[1] for run in runs])
                    what = f"{rtt_s * 1e3:g} ms | {'up' if upload else 'down'} | {way}"
                    print(f"| {what} | {found:.2f} | {others:.2f} |", flush=True)
                    measured[what.replace(" |", ",")] = found.values
    return measured


def judge(stood_still: Mapping[str, Sequence[float]]) -> Iterator[Verdict]:
    """Say whether the streams of the path go on soon: seconds of each run, by where and how it died."""
    for name, seconds in stood_still.items():
        found = Spread(seconds)
        limit = f"{name}: its streams go on within {GONE_S:g} s, always"
        yield Verdict(limit, f"{found:.2f} s", found.worst <= GONE_S)


def long(topology: Topology, rtt_s: float) -> Topology:
    """Return a network whose paths have a round trip of so many seconds."""
    links = (
        wan(link.a, link.b, RATE_BPS, rtt_s, name=link.name) if link.rate_bps else link
        for link in topology.links
    )
    return replace(topology, links=tuple(links))


def lost(lab: Lab, *, upload: bool, is_silent: bool) -> tuple[float, float]:
    """Copy once, have the path die; return for how long a stream of it stood still, and one of the others."""
    switches, link = netns_name(lab.id, SWITCHES), lab.link(LINK)
    with tempfile.TemporaryDirectory(prefix="mpx-bench-") as name:
        folder = Path(name)
        (folder / "served").mkdir()
        source = folder / "file" if upload else folder / "served" / "file"
        source.write_bytes(os.urandom(SIZE))
        with mpx_server(lab.host("dst"), folder / "served", CUBIC) as url:
            words = [str(source), f"{url}/copy"] if upload else [f"{url}/file", str(folder / "copy")]
            before = crossed(lab)
            process = copying(lab, folder, words)
            while crossed(lab) - before < UNTIL_BYTES and process.poll() is None:
                time.sleep(LOOK_S)  # a link has no event for what it has carried
            ports = inside(switches, streams_by_port)
            if is_silent:
                link.change(loss=1.0)
            else:
                link.set_up(False)
            streams = watched(lab, ports, upload=upload)
            if is_silent:
                link.change(loss=0.0)
            else:
                link.set_up(True)
            told = process.communicate()[1].decode()
        if process.returncode:
            raise RuntimeError(told)
        inside(switches, partial(wait_found, 2 * 8))
    pauses = [(stream.path == DIES, stream.longest_s) for stream in streams]
    return max(pause for mine, pause in pauses if mine), max(pause for mine, pause in pauses if not mine)


def crossed(lab: Lab) -> int:
    """Return the bytes that the link has carried, both ways together."""
    stats = lab.link(LINK).stats()
    return stats.a_to_b.delivered.bytes + stats.b_to_a.delivered.bytes


def streams_by_port() -> dict[int, int]:
    """Return the path of each port of the host that copies."""
    (known,) = ask("GET", "/path-sets")
    return {int(name.rpartition(":")[2]): path for name, path in known["ports"].items()}


def watched(lab: Lab, paths: dict[int, int], *, upload: bool) -> list[StreamProgress]:
    """Look at the connections with these ports, where they are sent, for some seconds."""
    sender = lab.host("src" if upload else "dst")
    streams: dict[int, StreamProgress] = {}
    table = inside(sender.netns, SocketTable)
    until_s = time.monotonic() + LOOKED_S
    while (now_s := time.monotonic()) < until_s:
        for each in table.open():
            port = (each.local if upload else each.peer)[1]
            if port in paths:
                stream = streams.setdefault(each.cookie, StreamProgress(paths[port]))
                stream.look(now_s, each.sample)
        time.sleep(LOOK_S)  # the interval of the samples
    table.close()
    return [stream for stream in streams.values() if stream.bytes > ASKED_BYTES]


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--quick", action="store_true", help="two runs of each")
    run(parser, measure, judge)
