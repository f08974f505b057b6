"""NAK-F3.6 (nakasan, figure 3.6): Multipath TCP over two links that go and come back.

    mpx lab simulate python bench/nak_f36.py [--quick] [--figure FILE]     (root)

Two hosts with two interfaces each, two links of 100 Mbit/s, one connection for 60 s, 5 runs. The receiver's
first interface is down from 15 to 28 s, its second from 25 to 38 s. As a host's network manager does it, an
interface that is up again gets its routes, and the sender, whose interface has a carrier again, makes a
subflow from it anew: Linux does not by itself.

What it should show: at least 90 % of what is available, about 190, 95, 0, 95 and 190 Mbit/s, within 3 s after
each change, in each run; within 5 s after the 3 s without any link, which the connection survives.
"""

import argparse
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from figures import Spread, Verdict, drawn
from mpx_lab.lab import Lab
from mpx_lab.plan import DEFAULT_CONGESTION, routes
from mpx_lab.topologies import TWO_LINKS
from smoc.addresses import LIMITS, ip_batch, take_subflows
from smoc.flow import Flow, measure
from smoc.runs import Counting, options_of, run_counted

SECONDS = 60.0
EVENTS = ((15.0, 0, False), (25.0, 1, False), (28.0, 0, True), (38.0, 1, True))  # when, which, whether up
PHASES = ((0.0, 15.0, 2), (15.0, 25.0, 1), (25.0, 28.0, 0), (28.0, 38.0, 1), (38.0, 60.0, 2))  # and how many
LINK_BPS = 100e6
SHARE = 0.9  # of what is available: so much is as much
FOLLOWED_S, RECOVERED_S = 3.0, 5.0
SAMPLE_S = 0.5


def measure_all(options: argparse.Namespace, counting: Counting) -> tuple[dict[str, Any], Sequence[str]]:
    """Measure, and draw the first run."""
    with Lab.up(TWO_LINKS, "nak-f36", scale=options.scale) as lab:
        take_subflows(lab, "dst")
        flows = [counting.run(lab, "NAK-F3.6", partial(run, lab)) for _ in range(1 if options.quick else 5)]
    if options.figure:
        print(drawn(options.figure, partial(draw, flows[0])))
    return {"link_bps": LINK_BPS * options.scale, "flows": flows}, table(flows)


def run(lab: Lab) -> Flow:
    """Send for a minute while links go and come back."""
    both = [set_endpoint, partial(set_endpoint, add=True)]
    for each in both:
        each(lab, 1)
    began_s = time.monotonic()

    def change() -> None:
        for at_s, which, up in EVENTS:
            time.sleep(max(0.0, began_s + at_s - time.monotonic()))
            switch(lab, which, up=up)

    changing = threading.Thread(target=change)
    changing.start()
    flow = measure(lab, ("src", "dst"), "mptcp", connections=1, seconds=SECONDS)
    changing.join()
    return flow


def switch(lab: Lab, which: int, *, up: bool) -> None:
    """Take an interface of the receiver down, or up again as it was before."""
    there = lab.topology.interfaces("dst")[which]
    ip_batch(lab, "dst", [f"link set {there.device} {'up' if up else 'down'}"])
    if up:
        ip_batch(lab, "dst", routes(there, None, DEFAULT_CONGESTION, None)[:1])  # of IPv4
        set_endpoint(lab, which)
        set_endpoint(lab, which, add=True)


def set_endpoint(lab: Lab, which: int, *, add: bool = False) -> None:
    """Have the sender make subflows from one of its interfaces, or not any more."""
    face = lab.topology.interfaces("src")[which]
    if add:
        ip_batch(
            lab, "src", [LIMITS, f"mptcp endpoint add {face.ipv4} dev {face.device} id {which + 1} subflow"]
        )
    else:
        lab.host("src").run(["ip", "mptcp", "endpoint", "delete", "id", str(which + 1)], capture_output=True)


def table(flows: Sequence[Flow]) -> Sequence[str]:
    """Return a line for each phase."""
    lines = ["| from, s | until | links | Mbit/s: median (min to max) |", "|---|---|---|---|"]
    for from_s, until_s, links in PHASES:
        rates = Spread([flow.bps(from_s, until_s) / 1e6 for flow in flows])
        lines.append(f"| {from_s:.0f} | {until_s:.0f} | {links} | {rates:.1f} |")
    return lines


def followed_s(flow: Flow, phase: tuple[float, float, int], link_bps: float) -> float:
    """Return how long after its beginning a phase has what is available, within a sample."""
    from_s, until_s, links = phase
    steps = int((until_s - from_s) / SAMPLE_S)
    for step in range(steps):
        at_s = from_s + step * SAMPLE_S
        rate_bps = flow.bps(at_s, at_s + SAMPLE_S)
        if rate_bps >= SHARE * links * link_bps * 1448 / 1514 and (links or rate_bps < 0.01 * link_bps):
            return at_s - from_s
    return float("inf")


def judge(measured: Mapping[str, Any]) -> Sequence[Verdict]:
    """Say whether each change is followed, and soon."""
    flows, link_bps, said = [Flow(**each) for each in measured["flows"]], measured["link_bps"], []
    for number, phase in enumerate(PHASES[1:], 1):
        after = Spread([followed_s(flow, phase, link_bps) for flow in flows])
        limit_s = RECOVERED_S if PHASES[number - 1][2] == 0 else FOLLOWED_S
        said.append(
            Verdict(
                f"from {phase[0]:.0f} s, {phase[2]} links: followed within {limit_s:g} s in each run",
                f"{after:.1f} s",
                after.worst <= limit_s,
            )
        )
    return said


def draw(flow: Flow, axes: Any) -> None:
    """Draw goodput over time."""
    steps = [SAMPLE_S * n for n in range(1, int(SECONDS / SAMPLE_S) + 1)]
    axes.plot(steps, [flow.bps(t - SAMPLE_S, t) / 1e6 for t in steps])
    axes.set(title="NAK-F3.6", xlabel="seconds", ylabel="goodput, Mbit/s", ylim=(0, None))


if __name__ == "__main__":
    parser = options_of(__doc__)
    parser.add_argument("--figure", type=Path, help="where to draw the first run")
    run_counted(parser, measure_all, judge)
