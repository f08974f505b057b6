"""NAK-T5.1 (nakasan, table 5.1), its shape: a store that keeps two copies, over a tree and over all links.

    mpx lab simulate python bench/nak_t51.py [--quick]     (root)

CEPH6: six nodes, ten links of 100 Mbit/s. Node 5 writes to node 2, which passes everything on to node 4, and
reads back from node 2: a stand-in for Ceph. Plain TCP over what the controller forwards by itself (as a
spanning tree), and Multipath TCP with two subflows whose paths the controller chooses. One large file (1 GB;
quick: 200 MB), and 50 of 1 MB (quick: 10); three runs (quick: one).

What it should show: writing at least 1.2 times, reading 1.7 to 2.1 times as fast; a small file takes at most
1.2 times as long. The thesis reads 3.4 times as fast, which two links of 100 Mbit/s cannot carry.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from figures import Spread, Verdict
from many_paths import many_paths
from mpx_lab.lab import Lab
from mpx_lab.topologies import CEPH6
from smoc.addresses import give_addresses, take_subflows
from smoc.runs import Counting, options_of, run_counted

PROGRAM = str(Path(__file__).parent / "smoc" / "store.py")
PORT = 5002
CLIENT, FIRST, SECOND = "node5", "node2", "node4"
SUBFLOWS = 2
PROTOCOLS = {"tcp": "plain TCP, tree", "mptcp": "Multipath TCP, two paths"}
SMALL = 1_000_000
Times = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]  # seconds by size, protocol, what is done


def measure(options: argparse.Namespace, counting: Counting) -> tuple[dict[str, Any], Sequence[str]]:
    """Write and read large and small files over each protocol."""
    large, files, runs = (200_000_000, 10, 1) if options.quick else (1_000_000_000, 50, 3)
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        many_paths(CEPH6.scaled(options.scale), "nak-t51", Path(folder)) as made,
    ):
        for host in (CLIENT, FIRST, SECOND):
            give_addresses(made.lab, host, SUBFLOWS)
            take_subflows(made.lab, host)
        for protocol in [*PROTOCOLS] * runs:
            with stores(made.lab, protocol):
                for name, size, times in (("large", large, 1), ("small", SMALL, files)):
                    for what in ("write", "read"):
                        do = partial(seconds, made.lab, what, protocol, size, times)
                        took_s = counting.run(made.lab, "NAK-T5.1", do)
                        of_size = found.setdefault(name, {}).setdefault(protocol, {})
                        of_size.setdefault(what, []).append(took_s)
    return found, table(found, large)


@contextmanager
def stores(lab: Lab, protocol: str) -> Iterator[None]:
    """Have both nodes store."""
    with ExitStack() as ended:
        for node, following in ((SECOND, []), (FIRST, [lab.host(SECOND).addresses[0]])):
            words = [sys.executable, PROGRAM, "serve", protocol, str(PORT), *following]
            process = ended.enter_context(lab.host(node).popen(words, stdout=subprocess.PIPE))
            ended.callback(process.kill)
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield


def seconds(lab: Lab, what: str, protocol: str, size: int, times: int) -> float:
    """Return how long a file takes."""
    numbers = map(str, (PORT, size, times))
    words = [sys.executable, PROGRAM, what, protocol, lab.host(FIRST).addresses[0], *numbers]
    done = lab.host(CLIENT).run(words, check=True, stdout=subprocess.PIPE, text=True, timeout=3600)
    return float(done.stdout)


def table(found: Times, large: int) -> Sequence[str]:
    """Return a line for each size."""
    lines = ["| MB | | write, s: median (min to max) | read, s |", "|---|---|---|---|"]
    for which, size in (("large", large), ("small", SMALL)):
        for protocol, name in PROTOCOLS.items():
            write, read = (Spread(found[which][protocol][what]) for what in ("write", "read"))
            lines.append(f"| {size / 1e6:g} | {name} | {write:.3f} | {read:.3f} |")
    return lines


def judge(found: Times) -> Sequence[Verdict]:
    """Say whether it is as it should be, in the median of the runs."""

    def times(what: str, size: str) -> float:
        plain, many = (Spread(found[size][protocol][what]) for protocol in ("tcp", "mptcp"))
        return plain.median / many.median

    write, read = times("write", "large"), times("read", "large")
    small = max(1 / times(what, "small") for what in ("write", "read"))
    return [
        Verdict("writing at least 1.2 times as fast", f"{write:.2f}", write >= 1.2),
        Verdict("reading 1.7 to 2.1 times as fast", f"{read:.2f}", 1.7 <= read <= 2.1),
        Verdict("a small file takes at most 1.2 times as long", f"{small:.2f}", small <= 1.2),
    ]


if __name__ == "__main__":
    run_counted(options_of(__doc__), measure, judge)
