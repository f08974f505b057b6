"""Links as users have them today: windows as the kernel tunes them, CUBIC or BBR, random loss of 0 to 0.1 %.

More streams bring little there. Our tuner should notice it and stay low: its steady goodput at 0.97 of the
best fixed number, with at most twice as many streams as the fewest that come within 10 % of that.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Link
from apt.grid_row import GridRow, judge_grid
from apt.row import Read
from apt.tools import fixed
from figures import Verdict, median
from harness import run_row

LOSSES = {"quick": (0.0, 0.001), "full": (0.0, 0.0001, 0.001)}
NEAR = 0.9
CONTROLS = ("cubic", "bbr")


class Today(GridRow):
    """See the head of this file; half the rate of F5, so that three links run at once."""

    name = "today"
    axis = "congestion control and loss"
    numbers = (1, 2, 4, 8, 16, 32)

    def links(self, effort: str) -> Sequence[Link]:
        """Both congestion controls at every loss."""
        return [
            Link(
                100_000_000,
                rtt_s=0.060,
                queue_packets=500,
                window_bytes=None,
                congestion=congestion,
                loss=loss,
            )
            for congestion in CONTROLS
            for loss in LOSSES[effort]
        ]

    def value(self, link: Link) -> float:
        """Where it is drawn: the losses of one control after those of the other."""
        losses = LOSSES["full"]
        return CONTROLS.index(link.congestion) * len(losses) + losses.index(link.loss)

    def label(self, link: Link) -> str:
        """Both in words."""
        return f"{link.congestion}, {link.loss:.2%}"


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether it stays low where more brings little, and ours does what we claim."""
    return judge_grid(stored, _shown)


def _shown(links: Sequence[Link], found: Read) -> Iterable[Verdict]:
    for link in links:
        medians = {n: median(found[link, fixed(n)], "steady_bps") for n in Today.numbers}
        fewest = min(n for n, bps in medians.items() if bps >= NEAR * max(medians.values()))
        streams = median(found[link, "auto"], "streams")
        limit = f"{Today().label(link)}: at most twice the fewest streams that give {NEAR:.0%}"
        yield Verdict(limit, f"{streams:.1f}, the fewest are {fewest}", streams <= 2 * fewest)


if __name__ == "__main__":
    run_row(Today(), judge)
