"""The error of each method of `mpx probe` over emulated links with a known round-trip time. Needs root.

    .venv/3.11/bin/python bench/probe_ways.py [--runs 3] [--window 10]

Two hosts and a link of 50 Mbit/s, nothing else on it. For each RTT and way: by how much the shortest, the
median and the 99th percentile exceed the link's RTT, median of the runs (least to most), and the noise that
`mpx probe` states. What the emulator and the hosts add themselves is in it, so this is the most that a way
can be off. A line for each verdict: no probe lost, none shorter than the link; exits 1 where one is not kept.
"""

import argparse
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
from figures import Spread, Verdict, machine
from harness import command, run
from mpx_lab.lab import Lab
from mpx_lab.lab_host import LabHost
from mpx_lab.namespace import inside
from mpx_lab.topology import Topology, wan

from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.location import Location
from mpx.rtt.method import Method
from mpx.rtt.methods.choose import choose
from mpx.rtt.methods.handshake import HandshakeMethod
from mpx.rtt.methods.icmp import IcmpMethod
from mpx.rtt.methods.session import SessionMethod
from mpx.rtt.runner import Run
from mpx.rtt.schedule import single
from mpx.rtt.series import Summary, summary
from mpx.serve import Server

RATE_BPS = 50_000_000
RTTS_S = (0.001, 0.06, 0.3)
CLOSED_PORT = 9
WAYS = ("echo", "session", "handshake, open port", "handshake, refused", "ICMP echo")


@contextmanager
def opened(name: str, source: LabHost, sink: LabHost, folder: Path) -> Iterator[Method]:
    """One method between two hosts; the peer that answers ends with the block."""
    address = sink.addresses[0]

    def server() -> Server:
        return Server(folder, host=address, insecure=True, allow_from=["10.0.0.0/8"])

    def never() -> bool:
        return False

    with ExitStack() as stack:
        if name in ("echo", "session"):
            port = stack.enter_context(inside(sink.netns, server)).port
        if name == "echo":
            chosen = inside(source.netns, lambda: choose(address, [(address, port)], never))
            stack.enter_context(chosen.opened)
            yield chosen.method
        elif name == "session":
            location = Location("ftp", "/", address, port)
            session = stack.enter_context(
                inside(source.netns, lambda: ClientSession(location, SessionOptions()))
            )
            session.greet()
            yield SessionMethod(session)
        elif name == "ICMP echo":
            yield stack.enter_context(closing(inside(source.netns, lambda: IcmpMethod(address))))
        else:
            port = CLOSED_PORT
            if name == "handshake, open port":
                listening = inside(sink.netns, lambda: socket.create_server((address, 0), backlog=4096))
                port = stack.enter_context(listening).getsockname()[1]
            yield stack.enter_context(closing(HandshakeMethod((address, port))))


@dataclass(frozen=True)
class Window:
    """What one window read, and the noise stated right after it; seconds, None where it could not be had."""

    read: Summary
    noise_s: float | None


def measure_window(name: str, rtt_s: float, window_s: float) -> Window:
    """Probe once, over a lab of its own."""
    topology = Topology("ways", ("src",), ("dst",), (wan("src", "dst", RATE_BPS, rtt_s),))
    with tempfile.TemporaryDirectory() as folder, Lab.up(topology, f"ways{os.getpid()}") as lab:
        source, sink = lab.hosts
        with opened(name, source, sink, Path(folder)) as way:
            run = Run(way)

            def go() -> float | None:
                run.go(single(window_s), lambda: False)
                return way.noise().rtt_s

            noise_s = inside(source.netns, go)
            return Window(summary(run.probes()), noise_s)


def spread_us(values: Sequence[float | None]) -> str:
    """Return what is known of them in microseconds."""
    known = [value for value in values if value is not None]
    return f"{Spread(known).times(1e6):.0f}" if known else "not known"


def line(name: str, rtt_s: float, windows: Sequence[Window]) -> str:
    """Return one row of the table."""

    def beyond(values: Iterable[float | None]) -> str:
        return spread_us([None if value is None else value - rtt_s for value in values])

    read = [window.read for window in windows]
    least, median = beyond(each.min_s for each in read), beyond(each.median_s for each in read)
    p99, noise = beyond(each.p99_s for each in read), spread_us([window.noise_s for window in windows])
    return f"{rtt_s * 1e3:3.0f} ms  {name:20s} | {least:>20s} | {median:>20s} | {p99:>22s} | {noise}"


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure with each method at each RTT and print the table."""
    print(machine())
    print("us beyond the RTT of the link, median of the runs (least to most)\n")
    print(f"{'RTT':>6s}  {'way':20s} | {'min':>20s} | {'median':>20s} | {'P99':>22s} | noise stated")
    measured = []
    for rtt_s in RTTS_S:
        for name in WAYS:
            windows = [measure_window(name, rtt_s, options.window) for _ in range(options.runs)]
            for window in windows:
                least_s, lost = window.read.min_s, window.read.lost
                measured.append({"way": name, "rtt_s": rtt_s, "lost": lost, "least_s": least_s})
            print(line(name, rtt_s, windows), flush=True)
    return measured


def judge(windows: Sequence[Mapping[str, Any]]) -> Iterator[Verdict]:
    """Say of all windows together whether a probe was lost, or quicker than it can be."""
    lost = sum(window["lost"] for window in windows)
    silent = sum(window["least_s"] is None for window in windows)
    short = sum(window["least_s"] is not None and window["least_s"] < window["rtt_s"] for window in windows)
    told = f"{lost} lost, {silent} of {len(windows)} windows without any"
    yield Verdict("no probe of an idle link is lost", told, lost == 0 and silent == 0 and bool(windows))
    yield Verdict("no RTT is shorter than the link's", f"{short} windows with one", short == 0)


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--runs", type=int, default=3, help="windows of each method at each RTT")
    parser.add_argument("--window", type=float, default=10.0, help="seconds of a window")
    run(parser, measure, judge)
