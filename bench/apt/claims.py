"""What mpx claims on every link of the grid: near the best fixed number at once, and from then on."""

import statistics
from collections.abc import Mapping, Sequence

from figures import Verdict

from apt.cell import Link
from apt.store import Result
from apt.tools import FIXED

REACH = 0.90  # of the best fixed setting
FIRST_S = 60.0
FIRST_SHARE = 0.92
STEADY_SHARE = 0.97
STEADY_FROM = 2 / 3  # of a run: what comes later is steady


def steady_bps(run: Result) -> float:
    """Return the goodput of the last third of a run."""
    return run.goodput.mean_bps(run.goodput.end_s * STEADY_FROM, run.goodput.end_s)


def best_fixed(by_tool: Mapping[str, Sequence[Result]]) -> tuple[str, float]:
    """Return the fixed setting with the best steady goodput, and that goodput."""
    medians = {
        tool: statistics.median(map(steady_bps, runs))
        for tool, runs in by_tool.items()
        if tool.startswith(FIXED)
    }
    best = max(medians, key=lambda tool: medians[tool])
    return best, medians[best]


def deadline_s(link: Link) -> float:
    """Return within which time the best is to be reached: 3 s or 40 round trips, whichever is longer."""
    return max(3.0, 40 * link.rtt_s)


def claims_of(link: Link, by_tool: Mapping[str, Sequence[Result]]) -> list[Verdict]:
    """Say whether our default is near the best fixed setting of this link soon, over a minute, and later."""
    runs = by_tool["auto"]
    tool, best_bps = best_fixed(by_tool)
    reached = [run.goodput.reached_s(REACH * best_bps) for run in runs]
    times = [float("inf") if t is None else t for t in reached]
    end_s = min(FIRST_S, *(run.goodput.end_s for run in runs))
    first = statistics.median(run.goodput.mean_bps(0, end_s) for run in runs) / best_bps
    steady = statistics.median(map(steady_bps, runs)) / best_bps
    where = f"{link.name}, best {tool} with {best_bps / 1e6:.1f} Mbit/s"
    return [
        Verdict(
            f"{where}: {REACH:.0%} of it within {deadline_s(link):g} s",
            f"{statistics.median(times):.1f} s ({min(times):.1f} to {max(times):.1f})",
            statistics.median(times) <= deadline_s(link),
        ),
        Verdict(
            f"{where}: {FIRST_SHARE:.0%} over the first {end_s:.0f} s", f"{first:.1%}", first >= FIRST_SHARE
        ),
        Verdict(f"{where}: {STEADY_SHARE:.0%} afterwards", f"{steady:.1%}", steady >= STEADY_SHARE),
    ]
