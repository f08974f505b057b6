"""APT-F9 and APT-F10: goodput and streams found over the delay.

Delays as printed, 10 to 100 ms, so that the chunk time in round trips is the paper's; the rate and the queue
a fifth of it: 200 Mbit/s, 100 packets. The windows stay at 64 KB, since the kernel keeps no smaller one
exactly, so that a fifth of the paper's streams fill the link: 4 at 10 ms to 37 at 100 ms.

The links' product of bandwidth and delay over the window is thus that of the paper at a fifth of its rate;
at 80 and 100 ms the queue is two windows long, which is what streams that begin overflow.

What the rows should show: APT at 0.85 of the link up to 80 ms, less beyond with chunks of 3 s, of which
chunks of 10 s win back at least half; streams grow with the delay.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Cell, Link
from apt.grid_row import GridRow, at_least, grows, judge_grid
from apt.row import Read, repeated
from apt.tools import PAPER_LONG
from figures import Verdict, median
from harness import run_row

DELAYS_MS = {"quick": (10, 80, 100), "full": tuple(range(10, 101, 10))}
QUEUE_PACKETS = 100
LONG_S = 300.0  # with chunks of 10 s a search takes up to 190 s


class F9F10(GridRow):
    """See the head of this file."""

    name = "f9-f10"
    axis = "delay, ms"
    numbers = (4, 8, 16, 32, 48, 64)

    def links(self, effort: str) -> Sequence[Link]:
        """The paper's ten delays, or three of them."""
        return [Link(rtt_s=ms / 1e3, queue_packets=QUEUE_PACKETS) for ms in DELAYS_MS[effort]]

    def cells(self, effort: str) -> Sequence[Cell]:
        """At full effort also chunks of 10 s where the paper has a loss."""
        cells = list(super().cells(effort))
        if effort == "full":
            late = [link for link in self.links(effort) if link.rtt_s > 0.08]
            cells += repeated(lambda turn: [Cell(link, PAPER_LONG, LONG_S, turn) for link in late], 3)
        return cells

    def value(self, link: Link) -> float:
        """The delay, which is read as the round trip."""
        return link.rtt_s * 1e3


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether F9 and F10 show what they should, and ours what we claim."""
    return judge_grid(stored, _shown)


def _shown(links: Sequence[Link], found: Read) -> Iterable[Verdict]:
    """What is lost beyond 80 ms is measured from what 80 ms gives."""
    said = at_least([link for link in links if link.rtt_s <= 0.08], found, 0.85)
    late = [link for link in links if link.rtt_s > 0.08]
    before = median(found[next(link for link in links if link.rtt_s == 0.08), "paper"], "steady_bps")
    for link in late:
        runs = [run["steady_bps"] / before for run in found[link, "paper"]]
        short = statistics.median(runs)
        lower = f"{short:.2f} of it, {max(runs):.2f} at most"
        said.append(Verdict(f"{link.name}: paper, 3 s, less than at 80 ms", lower, max(runs) < 1))
        if (link, PAPER_LONG) in found:
            longer = median(found[link, PAPER_LONG], "steady_bps") / before
            enough = longer >= (short + 1) / 2
            said.append(Verdict(f"{link.name}: 10 s win back half of that", f"{longer:.2f} of it", enough))
    return [*said, *at_least(late, found, 0.85, "auto"), grows(F9F10(), links, found)]


if __name__ == "__main__":
    run_row(F9F10(), judge)
