"""SMOC-F6c (nakasan, figure 4.5c): twelve connections between two sites far apart, over two paths.

    mpx lab simulate python bench/smoc_f6c.py [--quick] [--figure FILE]     (root)

PRAGMA-2: two paths of 100 Mbit/s with 191 ms. Twelve connections of plain TCP over what the controller
forwards by itself, and twelve of Multipath TCP with two subflows each, whose paths the controller chooses;
160 s, 3 runs (quick: 60 s, once).

What it should show: Multipath TCP has more from the first 10 s on, and its goodput rises through the run.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from figures import Spread, Verdict, drawn
from many_paths import many_paths
from mpx_lab.topologies import PRAGMA_2
from smoc.addresses import give_addresses, take_subflows
from smoc.flow import Flow, measure
from smoc.runs import Counting, options_of, run_counted

TREE, OURS = "plain TCP, one path", "Multipath TCP, two paths"
CONNECTIONS, SUBFLOWS = 12, 2
FIRST_S = 10.0
Results = Mapping[str, Sequence[Flow]]


def measure_all(options: argparse.Namespace, counting: Counting) -> tuple[dict[str, Any], Sequence[str]]:
    """Measure both, in turns, and draw the first runs."""
    runs, seconds = (1, 60.0) if options.quick else (3, 160.0)
    results: dict[str, list[Flow]] = {TREE: [], OURS: []}
    with (
        tempfile.TemporaryDirectory() as folder,
        many_paths(PRAGMA_2.scaled(options.scale), "smoc-f6c", Path(folder)) as made,
    ):
        give_addresses(made.lab, "naist", SUBFLOWS)
        take_subflows(made.lab, "uf")
        for _ in range(runs):
            for name, protocol in ((TREE, "tcp"), (OURS, "mptcp")):
                do = partial(
                    measure,
                    *(made.lab, ("naist", "uf"), protocol),
                    connections=CONNECTIONS,
                    seconds=seconds,
                )
                results[name].append(counting.run(made.lab, "SMOC-F6c", do))
    if options.figure:
        print(drawn(options.figure, partial(draw, results, seconds)))
    return {"seconds": seconds, "runs": results}, table(results, seconds)


def table(results: Results, seconds: float) -> Sequence[str]:
    """Return a line for each."""
    lines = ["| Mbit/s: median (min to max) | first 10 s | first third | last third |", "|---|---|---|---|"]
    for name, flows in results.items():
        spans = ((0.0, FIRST_S), (0.0, seconds / 3), (seconds * 2 / 3, seconds))
        cells = (f"{Spread([flow.bps(*span) / 1e6 for flow in flows]):.1f}" for span in spans)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def judge(measured: Mapping[str, Any]) -> Sequence[Verdict]:
    """Say whether it is as in the figure."""
    seconds = measured["seconds"]
    results = {name: [Flow(**each) for each in runs] for name, runs in measured["runs"].items()}

    def times(from_s: float, until_s: float) -> Spread:
        pairs = zip(results[OURS], results[TREE], strict=True)
        return Spread([ours.bps(from_s, until_s) / tree.bps(from_s, until_s) for ours, tree in pairs])

    first, later = times(0.0, FIRST_S), times(FIRST_S, seconds)
    third_s = seconds / 3
    rise = Spread([flow.bps(2 * third_s, seconds) / flow.bps(0.0, third_s) for flow in results[OURS]])
    return [
        Verdict("more than plain TCP in the first 10 s", f"{first:.2f} times", min(first.values) > 1),
        Verdict("and later", f"{later:.2f} times", min(later.values) > 1),
        Verdict(
            "it rises: the last third has more than the first", f"{rise:.2f} times", min(rise.values) > 1
        ),
    ]


def draw(results: Results, seconds: float, axes: Any) -> None:
    """Draw the first run of each over time."""
    steps = [float(n) for n in range(1, int(seconds) + 1)]
    for name, flows in results.items():
        axes.plot(steps, [flows[0].bps(t - 1, t) / 1e6 for t in steps], label=name)
    axes.set(title="SMOC-F6c", xlabel="seconds", ylabel="goodput, Mbit/s", ylim=(0, None))
    axes.legend(fontsize="small")


if __name__ == "__main__":
    parser = options_of(__doc__)
    parser.add_argument("--figure", type=Path, help="where to draw the first run of each")
    run_counted(parser, measure_all, judge)
