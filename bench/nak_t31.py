"""NAK-T3.1 and T3.2 (nakasan, tables 3.1 and 3.2): Multipath TCP over two links, with 1 to 4 connections.

    python bench/nak_t31.py [--quick] [--scale S]     (root)

Two hosts with two interfaces each, and no switches: two links of 100 Mbit/s (T3.1), and one of 100 beside one
of 50 Mbit/s (T3.2). Goodput over 10 s, mean of 5 runs.

What it should show. T3.1: over both links 1.9 to 2.1 times one link for each number of connections, and over
one link at least 0.97 of plain TCP. T3.2: at least 0.9 of both links together, and 2.8 to 3.1 times plain TCP
over the slow one.
"""

import argparse
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from figures import Spread, Verdict
from mpx_lab.lab import Lab
from mpx_lab.topologies import TWO_LINKS, UNEVEN_LINKS
from mpx_lab.topology import Topology
from smoc.addresses import LIMITS, ip_batch, take_subflows, use_interfaces
from smoc.flow import measure
from smoc.runs import Counting, options_of, run_counted

NUMBERS = (1, 2, 3, 4)  # connections
MANY, ONE, PLAIN = "Multipath TCP, both links", "Multipath TCP, one link", "plain TCP, one link"
Means = Mapping[str, Mapping[str, Sequence[float]]]  # goodputs by way and number of connections


def measure_all(options: argparse.Namespace, counting: Counting) -> tuple[dict[str, Any], Sequence[str]]:
    """Measure over even and over uneven links."""
    numbers = (1, 4) if options.quick else NUMBERS
    runs, seconds = (1, 4.0) if options.quick else (5, 10.0)
    even = means(TWO_LINKS, "link1", options.scale, counting, numbers, runs, seconds)
    uneven = means(UNEVEN_LINKS, "link2", options.scale, counting, numbers, runs, seconds)
    both_bps = options.scale * sum(link.rate_bps or 0 for link in UNEVEN_LINKS.links)
    lines = [*table("T3.1", even), "", *table("T3.2", uneven)]
    return {"T3.1": even, "T3.2": uneven, "both_bps": both_bps}, lines


def means(
    topology: Topology,
    single: str,
    scale: float,
    counting: Counting,
    numbers: Sequence[int],
    runs: int,
    seconds: float,
) -> Means:
    """Return the goodputs of each way for each number of connections; `single`: the one link."""
    found: dict[str, dict[str, list[float]]] = {}
    with Lab.up(topology, "nak-t31", scale=scale) as lab:
        take_subflows(lab, "dst")
        address = next(face.ipv4 for face in topology.interfaces("dst") if face.link == single)
        for number in numbers:
            for name in (MANY, ONE, PLAIN):
                ip_batch(lab, "src", ["mptcp endpoint flush", LIMITS])
                if name == MANY:
                    use_interfaces(lab, "src")
                for _ in range(runs):
                    do = partial(
                        measure,
                        lab,
                        ("src", "dst"),
                        "tcp" if name == PLAIN else "mptcp",
                        connections=number,
                        seconds=seconds,
                        address="" if name == MANY else address,
                    )
                    flow = counting.run(lab, f"{topology.name} {name}", do)
                    found.setdefault(name, {}).setdefault(str(number), []).append(flow.bps(0, seconds))
    return found


def judge(measured: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether T3.1 and T3.2 show what they should, in the mean of the runs."""
    even, uneven = (
        {name: {n: statistics.mean(bps) for n, bps in runs.items()} for name, runs in measured[row].items()}
        for row in ("T3.1", "T3.2")
    )
    for number, many in even[MANY].items():
        one, plain = even[ONE][number], even[PLAIN][number]
        where = f"T3.1, {number} connections"
        yield Verdict(f"{where}: 1.9 to 2.1 times one link", f"{many / one:.2f}", 1.9 <= many / one <= 2.1)
        yield Verdict(f"{where}: one link at least 0.97 of TCP", f"{one / plain:.2f}", one >= 0.97 * plain)
    for number, many in uneven[MANY].items():
        share, times = many / measured["both_bps"], many / uneven[PLAIN][number]
        where = f"T3.2, {number} connections"
        yield Verdict(f"{where}: at least 0.9 of both links", f"{share:.2f}", share >= 0.9)
        yield Verdict(f"{where}: 2.8 to 3.1 times the slow link", f"{times:.2f}", 2.8 <= times <= 3.1)


def table(name: str, found: Means) -> Sequence[str]:
    """Return a line for each way and number of connections."""
    lines = [f"| {name} | connections | Mbit/s: median (min to max) |", "|---|---|---|"]
    for way, runs in found.items():
        for number, values in runs.items():
            lines.append(f"| {way} | {number} | {Spread(values).times(1e-6):.2f} |")
    return lines


if __name__ == "__main__":
    run_counted(options_of(__doc__), measure_all, judge)
