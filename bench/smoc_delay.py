"""SMOC-6.2 (nakasan, section 4.4.2): how long after its first packet a subflow is on its path.

    python bench/smoc_delay.py [--quick] [--scale S]     (root)

Four disjoint paths; connections of Multipath TCP with four subflows one after the other. From the SYN of a
subflow, where it comes into the network, to its first packet that leaves its own path at the other end. One
of the four has the default path, and nothing can be seen of it. Data has to be sent first, so it is a bound.

What it should show: 99 % within 50 ms. In smoc it took 2 to 3 s, as each SYN and each answer was held and
lost; here they go on by the default path.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from figures import Spread, Verdict
from many_paths import many_paths
from mpx_lab.lab import Lab
from mpx_lab.namespace import RUN_NETNS
from mpx_lab.plan import SWITCHES, netns_name, port_name
from mpx_lab.topologies import THESIS_A
from smoc.addresses import give_addresses, take_subflows
from smoc.flow import receiving, send
from smoc.runs import Counting, options_of, run_counted

LIMIT_S, SHARE = 0.050, 0.99
SUBFLOWS = 4
SECONDS = 0.5  # of a connection
WATCH = "watch.py"


def measure(options: argparse.Namespace, counting: Counting) -> tuple[Any, Sequence[str]]:
    """Open many connections, and watch their subflows."""
    connections, runs = (10, 1) if options.quick else (100, 3)
    with (
        tempfile.TemporaryDirectory() as folder,
        many_paths(THESIS_A.scaled(options.scale), "smoc-delay", Path(folder)) as made,
    ):
        give_addresses(made.lab, "src", SUBFLOWS)
        take_subflows(made.lab, "dst")
        do = partial(measure_once, made.lab, connections)
        found = [counting.run(made.lab, "SMOC-6.2", do) for _ in range(runs)]
    return found, table(found)


def quantile(delays_s: Sequence[float], share: float) -> float:
    """Return the delay that `share` of the subflows do not exceed; infinite where none was seen."""
    ordered = sorted(delays_s)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


def judge(runs: Sequence[Sequence[float]]) -> Sequence[Verdict]:
    """Say whether nearly all subflows are on their paths in time, in each run; their delays in seconds."""
    late_s = Spread([quantile(delays_s, SHARE) for delays_s in runs])
    return [
        Verdict(
            f"{SHARE:.0%} of the subflows on their paths within {LIMIT_S * 1e3:g} ms, in each run",
            f"{late_s.times(1e3):.1f} ms, of {sum(map(len, runs))}",
            kept=late_s.worst <= LIMIT_S,
        )
    ]


def table(runs: Sequence[Sequence[float]]) -> Sequence[str]:
    """Return quantiles, a line for each run."""
    lines = ["| least | P50 | P90 | P99 | most, ms |", "|---|---|---|---|---|"]
    for delays_s in runs:
        cells = (f"{quantile(delays_s, share) * 1e3:.1f}" for share in (0.0, 0.5, 0.9, 0.99, 1.0))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def measure_once(lab: Lab, connections: int) -> list[float]:
    """Return how long it took for each subflow of which it can be seen, in seconds; infinite: for ever."""
    links = {link.name: link for link in lab.topology.links}
    entrance = port_name(links["src-s1"], "s1")
    ends = [port_name(links[f"s{n}-s6"], "s6") for n in (2, 3, 4, 5)]
    sink = lab.host("src").address_of("dst")
    words = [*_command(lab), sink, entrance, *ends]
    with (
        receiving(lab, "dst"),
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watching,
    ):
        assert watching.stdout is not None and watching.stdout.readline() == "ready\n"
        for _ in range(connections):
            send(lab, "src", sink, "mptcp", seconds=SECONDS)
        said, _ = watching.communicate("\n", timeout=60)
    seen: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for line in said.splitlines():
        at, device, source, port, what = line.split()
        seen.setdefault((source, port), {})[device, what] = float(at)
    default = {device for found in seen.values() for device, what in found if what == "SYN"}
    own = [(end, "data") for end in ends if end not in default]
    delays = [
        found[each] - found[entrance, "SYN"] for found in seen.values() for each in own if each in found
    ]
    missing = (SUBFLOWS - 1) * connections - len(delays)
    return [*delays, *[float("inf")] * missing]


def _command(lab: Lab) -> list[str]:
    program = __file__.replace("smoc_delay.py", f"smoc/{WATCH}")
    return ["nsenter", f"--net={RUN_NETNS / netns_name(lab.id, SWITCHES)}", sys.executable, program]


if __name__ == "__main__":
    run_counted(options_of(__doc__), measure, judge)
