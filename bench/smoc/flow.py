"""A measurement in the manner of iperf between two hosts of a lab, and what was received over time."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mpx_lab.lab import Lab

PORT = 5001
PROGRAM = str(Path(__file__).with_name("program.py"))


@dataclass(frozen=True)
class Flow:
    """What one measurement brought: (seconds since it began to connect, bytes received) in order."""

    points: Sequence[tuple[float, float]]

    def bytes_at(self, at_s: float) -> float:
        """Return what had been received by then."""
        before = (0.0, 0)
        for t, count in self.points:
            if t >= at_s:
                share = (at_s - before[0]) / (t - before[0]) if t > before[0] else 1.0
                return before[1] + share * (count - before[1])
            before = (t, count)
        return float(before[1])

    def bps(self, from_s: float, until_s: float) -> float:
        """Return the goodput between two times, bit/s."""
        return 8 * (self.bytes_at(until_s) - self.bytes_at(from_s)) / (until_s - from_s)

    def reaches_s(self, rate_bps: float, within_s: float, over_s: float = 0.25) -> float:
        """Return when `over_s` in a row had that rate; infinite if none of `within_s` had."""
        ends = (over_s + 0.05 * n for n in range(int((within_s - over_s) / 0.05) + 1))
        return next((end for end in ends if self.bps(end - over_s, end) >= rate_bps), float("inf"))


@contextmanager
def receiving(lab: Lab, host: str) -> Iterator["subprocess.Popen[str]"]:
    """Have a host receive what anybody sends."""
    process = lab.host(host).popen(
        [sys.executable, PROGRAM, "receive", str(PORT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()


def send(
    lab: Lab,
    source: str,
    address: str,
    protocol: str,
    *,
    connections: int = 1,
    seconds: float,
    rate_bps: float = 0.0,
) -> float:
    """Send for so long; return when it began to connect."""
    numbers = map(str, (PORT, connections, seconds, rate_bps))
    words = [sys.executable, PROGRAM, "send", protocol, address, *numbers]
    done = lab.host(source).run(words, check=True, stdout=subprocess.PIPE, text=True, timeout=seconds + 120)
    return float(done.stdout)


def measure(
    lab: Lab, ends: tuple[str, str], protocol: str, *, connections: int, seconds: float, address: str = ""
) -> Flow:
    """Send from one host to another, and return what came; `address`: not that of its first interface."""
    source, sink = ends
    with receiving(lab, sink) as receiver:
        to = address or lab.host(source).address_of(sink)
        began_s = send(lab, source, to, protocol, connections=connections, seconds=seconds)
        said, _ = receiver.communicate("", timeout=60)
    lines = (line.split() for line in said.splitlines())
    points = [(float(at) - began_s, int(count)) for at, count in lines]
    return Flow([(0.0, 0), *(point for point in points if 0 < point[0] <= seconds)])
