"""SMOC-F6a and F6b (nakasan, figures 4.5a, b): one transfer over disjoint paths, and over overlapping ones.

    python bench/smoc_f6.py [--quick] [--scale S] [--figure FILE]     (root)

Plain TCP over what the controller forwards by itself (as a spanning tree: one path), and one connection of
Multipath TCP with four subflows, whose paths the controller chooses: by itself (widest-apart) and as smoc
does (least-shared). Goodput is what the receiver got.

What it should show, in the median of the runs: in steady state 3.6 times plain TCP on four paths, and 1.8
times where the network carries twice as much, each reached within 1 s after the connection began.
"""

import argparse
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from figures import Spread, Verdict
from many_paths import many_paths
from mpx_lab.topologies import THESIS_A, THESIS_B
from smoc.addresses import give_addresses, take_subflows
from smoc.flow import Flow, measure
from smoc.runs import Counting, options_of, run_counted

TREE, OURS, SMOC = "plain TCP, one path", "Multipath TCP, widest-apart", "Multipath TCP, least-shared"
TOOLS = {
    TREE: ("tcp", "widest-apart"),
    OURS: ("mptcp", "widest-apart"),
    SMOC: ("mptcp", "least-shared"),
}
CASES = {"F6a": (THESIS_A, 3.6), "F6b": (THESIS_B, 1.8)}
SUBFLOWS = 4
STEADY_S, SOON_S = 2.0, 1.0
Results = dict[tuple[str, str], list[Flow]]  # by case and tool


def measure_all(options: argparse.Namespace, counting: Counting) -> tuple[dict[str, Any], Sequence[str]]:
    """Measure each case with each tool, and draw the first runs."""
    runs, seconds = (1, 8.0) if options.quick else (5, 20.0)
    results: Results = {}
    for case, (topology, _) in CASES.items():
        for selection in ("widest-apart", "least-shared"):
            tools = [(name, protocol) for name, (protocol, chosen) in TOOLS.items() if chosen == selection]
            config = {"path_sets": f'selection = "{selection}"'}
            with (
                tempfile.TemporaryDirectory() as folder,
                many_paths(topology.scaled(options.scale), "smoc-f6", Path(folder), config) as made,
            ):
                give_addresses(made.lab, "src", SUBFLOWS)
                take_subflows(made.lab, "dst")
                for _ in range(runs):
                    for name, protocol in tools:
                        do = partial(
                            measure, made.lab, ("src", "dst"), protocol, connections=1, seconds=seconds
                        )
                        found = counting.run(made.lab, f"SMOC-{case}", do)
                        results.setdefault((case, name), []).append(found)
    if options.figure:
        draw(results, seconds, options.figure)
    runs_of = {case: {name: results[case, name] for name in TOOLS} for case in CASES}
    return {"seconds": seconds, "runs": runs_of}, table(results, seconds)


def steady_bps(flow: Flow, seconds: float) -> float:
    """Return the goodput when it has come up."""
    return flow.bps(STEADY_S, seconds)


def table(results: Results, seconds: float) -> Sequence[str]:
    """Return a line for each."""
    lines = ["| | | steady, Mbit/s: median (min to max) | first second, Mbit/s |", "|---|---|---|---|"]
    for (case, name), flows in results.items():
        steady = Spread([steady_bps(flow, seconds) / 1e6 for flow in flows])
        first = Spread([flow.bps(0, SOON_S) / 1e6 for flow in flows])
        lines.append(f"| {case} | {name} | {steady:.1f} | {first:.1f} |")
    return lines


def judge(measured: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether each comes as far as it should, and when."""
    seconds = measured["seconds"]
    for case, (_, factor) in CASES.items():
        flows = {name: [Flow(**each) for each in runs] for name, runs in measured["runs"][case].items()}
        tree_bps = Spread([steady_bps(flow, seconds) for flow in flows[TREE]]).median
        for name in (OURS, SMOC):
            times = Spread([steady_bps(flow, seconds) / tree_bps for flow in flows[name]])
            after = Spread([flow.reaches_s(factor * tree_bps, seconds) for flow in flows[name]])
            limit = f"{case}, {name}: at least {factor} x plain TCP in the median"
            yield Verdict(limit, f"{times:.2f}", times.median >= factor)
            limit = f"{case}, {name}: that within {SOON_S:g} s in the median"
            yield Verdict(limit, f"{after:.2f} s", after.median <= SOON_S)


def draw(results: Results, seconds: float, file: Path) -> None:
    """Draw the first run of each over time."""
    import matplotlib.pyplot as plt

    figure, both = plt.subplots(1, len(CASES), figsize=(9, 3.5), sharey=True, squeeze=False)
    for axes, case in zip(both[0], CASES, strict=True):
        for name in TOOLS:
            flow = results[case, name][0]
            steps = [0.25 * n for n in range(1, int(seconds * 4) + 1)]
            axes.plot(steps, [flow.bps(t - 0.25, t) / 1e6 for t in steps], label=name)
        axes.set(title=case, xlabel="seconds", ylim=(0, None))
    both[0][0].set(ylabel="goodput, Mbit/s")
    both[0][0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    parser = options_of(__doc__)
    parser.add_argument("--figure", type=Path, help="where to draw the first run of each")
    run_counted(parser, measure_all, judge)
