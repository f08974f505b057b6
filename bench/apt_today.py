"""Links as users have them today: windows as the kernel tunes them, CUBIC or BBR, random loss of 0 to 0.1 %.

More streams bring little there. Our tuner should notice it and stay low: its steady goodput at 0.97 of the
best fixed number, with at most twice as many streams as the fewest that come within 10 % of that.
"""

import statistics
from collections.abc import Sequence

from apt.cell import Link
from apt.claims import median_steady_bps
from apt.grid_row import GridRow, streams_found
from apt.row import Results, main
from apt.tools import fixed
from figures import Verdict

LOSSES = {"quick": (0.0, 0.001), "full": (0.0, 0.0001, 0.001)}
NEAR = 0.9
CONTROLS = ("cubic", "bbr")


class Today(GridRow):
    """See the head of this file; half the rate of F5, so that three links run at once."""

    name = "today"
    doc = __doc__ or ""
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

    def shown(self, links: Sequence[Link], results: Results) -> Sequence[Verdict]:
        """Whether it stays low where more brings little."""
        said = []
        for link in links:
            medians = {n: median_steady_bps(results[link, fixed(n)]) for n in self.numbers}
            fewest = min(n for n, bps in medians.items() if bps >= NEAR * max(medians.values()))
            found = statistics.median(map(streams_found, results[link, "auto"]))
            limit = f"{self.label(link)}: at most {2 * fewest} streams, twice the fewest that give {NEAR:.0%}"
            said.append(Verdict(limit, f"{found:.1f}", found <= 2 * fewest))
        return said


if __name__ == "__main__":
    main(Today())
