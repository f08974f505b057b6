"""What mpx claims on every link of the grid: near the best fixed number at once, and from then on."""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from figures import Verdict, median

from apt.cell import Link
from apt.measure import reached_s
from apt.store import Result
from apt.tools import FIXED

REACH = 0.90  # of the best fixed setting
FIRST_S = 60.0
FIRST_SHARE = 0.92
STEADY_SHARE = 0.97
TIE = 0.01  # settings so close to the best count as equally good
LATER_S = 15.0  # the shortest time after the first minute that counts as steady
WORST_S = 10.0  # length of the worst period after the first minute, which is printed, too


def steady_bps(run: Result) -> float:
    """Return the goodput after the first minute, or of a shorter run that of its last half."""
    return run.goodput.mean_bps(steady_from_s(run), run.goodput.end_s)


def steady_from_s(run: Result) -> float:
    """Return from when on a run is called steady; a search that ends (the paper's) has ended by then.

    At least the last 15 s are, however long it searches.
    """
    end_s = run.goodput.end_s
    from_s = FIRST_S if end_s >= FIRST_S + LATER_S else end_s / 2
    if not run.searches_for_ever:
        changes = (now for before, now in itertools.pairwise(run.streams) if before[1] != now[1])
        from_s = max(from_s, min(max((at_s for at_s, _ in changes), default=0.0), end_s - LATER_S))
    return from_s


def median_steady_bps(runs: Sequence[Result]) -> float:
    """Return the median over the repetitions."""
    return statistics.median(map(steady_bps, runs))


def read(run: Result) -> dict[str, Any]:
    """Return what is judged of a run: goodput in bit/s, how it rose, and the streams found."""
    return {
        "steady_bps": steady_bps(run),
        "first_bps": run.goodput.mean_bps(0, FIRST_S),
        "worst_bps": _worst_bps(run),
        "risen": run.goodput.risen(),
        "streams": run.late_streams(),
    }


def best_fixed(by_tool: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[int, float]:
    """Return the fewest streams that come within 1 % of the best fixed number, and the goodput of that."""
    medians = {
        int(tool.removeprefix(FIXED)): median(runs, "steady_bps")
        for tool, runs in by_tool.items()
        if tool.startswith(FIXED)
    }
    best = max(medians.values())
    return min(n for n, bps in medians.items() if bps >= (1 - TIE) * best), best


def claims_of(link: Link, by_tool: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Verdict]:
    """Say whether our default is near the best fixed setting of this link soon, over a minute, and later.

    The reference is always the steady goodput of that setting, also in the first minute.
    `by_tool`: what was read of the runs of each.
    """
    runs = by_tool["auto"]
    number, best_bps = best_fixed(by_tool)
    times = sorted(reached_s(run["risen"], REACH * best_bps) for run in runs)
    soon_s, late_s = max(3.0, 40 * link.rtt_s), max(5.0, 60 * link.rtt_s)
    first, steady = (median(runs, key) / best_bps for key in ("first_bps", "steady_bps"))
    worst = min(run["worst_bps"] for run in runs) / best_bps
    best = f"of {best_bps / 1e6:.1f} Mbit/s with {number} streams"
    where = f"{link.name}, of the best fixed number"
    return [
        Verdict(
            f"{where}: {REACH:.0%} within {soon_s:g} s (median), {late_s:g} s (worst)",
            f"{statistics.median(times):.1f} s, {times[-1]:.1f} s, {best}",
            statistics.median(times) <= soon_s and times[-1] <= late_s,
        ),
        Verdict(
            f"{where}: {FIRST_SHARE:.0%} over the first minute", f"{first:.1%} {best}", first >= FIRST_SHARE
        ),
        Verdict(
            f"{where}: {STEADY_SHARE:.0%} afterwards",
            f"{steady:.1%} {best}, worst {WORST_S:g} s of any run {worst:.1%}",
            steady >= STEADY_SHARE,
        ),
    ]


def _worst_bps(run: Result) -> float:
    end_s = run.goodput.end_s
    first_s = int(max(0.0, min(FIRST_S, end_s - WORST_S)))
    starts = range(first_s, max(first_s, int(end_s - WORST_S)) + 1)
    return min(run.goodput.mean_bps(start, min(end_s, start + WORST_S)) for start in starts)
