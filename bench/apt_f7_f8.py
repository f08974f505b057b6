"""APT-F7 and APT-F8: goodput and streams found over the rate of the bottleneck.

The paper's 100 to 1000 Mbit/s at 10 ms, at a fifth of the clock: 20 to 200 Mbit/s at 50 ms; 64 KB windows,
500 packets. What the rows should show: APT at 0.85 of every rate; a fixed 4 flat once C > 4 W/R; no fixed
number best everywhere; streams grow with the rate (rank correlation above 0.8).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Link
from apt.grid_row import GridRow, at_least, grows, judge_grid, no_number_for_all
from apt.row import Read
from apt.tools import fixed
from figures import Verdict, median
from harness import run_row

RATES_MBPS = {"quick": (20, 200), "full": tuple(range(20, 201, 20))}


class F7F8(GridRow):
    """See the head of this file."""

    name = "f7-f8"
    axis = "rate, Mbit/s"

    def links(self, effort: str) -> Sequence[Link]:
        """The paper's ten rates, or the least and the most."""
        return [Link(rate_bps=rate * 1_000_000) for rate in RATES_MBPS[effort]]

    def value(self, link: Link) -> float:
        """The rate."""
        return link.rate_bps / 1e6


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether F7 and F8 show what they should, and ours what we claim."""
    return judge_grid(stored, _shown)


def _shown(links: Sequence[Link], found: Read) -> Iterable[Verdict]:
    """Quick has one rate above 4 W/R, so nothing can be flat there."""
    window_bps = 4 * 65535 * 8 / links[0].rtt_s
    limited = [link for link in links if link.ceiling_bps > window_bps]
    four = [median(found[link, fixed(4)], "steady_bps") for link in limited]
    said = at_least(links, found, 0.85)
    if len(four) > 1:
        flat = max(four) / min(four) - 1
        limit = "4 streams are flat within 15 % once C > 4 W/R"
        said.append(Verdict(limit, f"{flat:.1%} over {len(four)} rates", flat <= 0.15))
    return [*said, no_number_for_all(F7F8(), links, found), grows(F7F8(), links, found)]


if __name__ == "__main__":
    run_row(F7F8(), judge)
