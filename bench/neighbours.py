"""Goodput of a tool and of the traffic beside it, over the same time.

Times count from the tool's first byte; without a second one it is the end.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from apt.cell import Link
from apt.store import Result
from figures import Spread
from mpx_lab.series import goodput_bps, jain

FULL_FRAME_BYTES = 1514


def queue_packets(rate_bps: float, rtt_s: float, bdp: float) -> int:
    """Return how many full frames a queue of so many bandwidth-delay products holds."""
    return round(rate_bps * rtt_s * bdp / 8 / FULL_FRAME_BYTES)


def tool_bps(run: Result, from_s: float, to_s: float | None = None) -> float:
    """Return the tool's goodput."""
    return run.goodput.mean_bps(from_s, run.goodput.end_s if to_s is None else to_s)


def neighbours_bps(run: Result, from_s: float, to_s: float | None = None) -> list[float]:
    """Return the goodput of each generator beside it."""
    began_s, ends_s = run.transfers[0].began_s, run.goodput.end_s if to_s is None else to_s
    names = sorted(name for name in run.run.flows() if name.startswith("beside"))
    return [goodput_bps(run.run.goodput(name), began_s + from_s, began_s + ends_s) for name in names]


def theirs_bps(run: Result, from_s: float, to_s: float | None = None) -> float:
    """Return the goodput of all generators beside it together."""
    return sum(neighbours_bps(run, from_s, to_s))


def fairness(run: Result, from_s: float, to_s: float | None = None) -> float:
    """Return Jain's index of the tool and those beside it."""
    return jain([tool_bps(run, from_s, to_s), *neighbours_bps(run, from_s, to_s)])


def read(run: Result, from_s: float, to_s: float | None = None) -> dict[str, Any]:
    """Return what both sides had, as plain values."""
    ours, theirs = tool_bps(run, from_s, to_s), neighbours_bps(run, from_s, to_s)
    return {"ours_bps": ours, "theirs_bps": sum(theirs), "jain": jain([ours, *theirs])}


def median_of(runs: Sequence[Result], of: Callable[[Result], float]) -> float:
    """Return the median over the repetitions."""
    return statistics.median(map(of, runs))


def mbps(runs: Sequence[Result], of: Callable[[Result], float]) -> str:
    """Return median, least and most in Mbit/s."""
    return f"{Spread([of(run) for run in runs]).times(1e-6):.1f}"


def wan(rate_bps: int, rtt_s: float, bdp: float, beside: str, congestion: str = "cubic") -> Link:
    """Return a link whose windows the kernel tunes, with a queue of so many products."""
    queue = queue_packets(rate_bps, rtt_s, bdp)
    return Link(rate_bps, rtt_s, queue, None, congestion, beside=beside)
