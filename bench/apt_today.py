"""Links as users have them today: windows as the kernel tunes them, CUBIC or BBR, random loss of 0 to 0.1 %.

More streams bring little there. Our tuner should notice it and stay low: its steady goodput at 0.97 of the
best fixed number, with at most twice as many streams as the fewest that come within 10 % of that.
"""

import statistics
from collections.abc import Sequence

from apt.cell import Link
from apt.claims import steady_bps
from apt.grid_row import GridRow, on_link, streams_at_end
from apt.row import Results, main
from apt.tools import FIXED
from figures import Verdict

LOSSES = {"quick": (0.0, 0.001), "full": (0.0, 0.0001, 0.001)}
NEAR = 0.9


class Today(GridRow):
    """See the head of this file."""

    name = "today"
    doc = __doc__ or ""
    axis = "congestion control and loss, %"
    numbers = (1, 4, 16)
    tuned = ("auto",)

    def links(self, effort: str) -> Sequence[Link]:
        """Both congestion controls at every loss."""
        return [
            Link(rtt_s=0.060, queue_packets=1000, window_bytes=None, congestion=congestion, loss=loss)
            for congestion in ("cubic", "bbr")
            for loss in LOSSES[effort]
        ]

    def value(self, link: Link) -> float:
        """The loss in per cent; BBR's are drawn to the right of CUBIC's."""
        return link.loss * 100 + (1 if link.congestion == "bbr" else 0)

    def shown(self, links: Sequence[Link], results: Results) -> Sequence[Verdict]:
        """Whether it stays low where more brings little."""
        said = []
        for link in links:
            by_tool = on_link(results, link)
            fixed = {
                int(tool.removeprefix(FIXED)): statistics.median(map(steady_bps, runs))
                for tool, runs in by_tool.items()
                if tool.startswith(FIXED)
            }
            fewest = min(n for n, bps in fixed.items() if bps >= NEAR * max(fixed.values()))
            streams = statistics.median(map(streams_at_end, by_tool["auto"]))
            said.append(
                Verdict(f"{link.name}: at most {2 * fewest} streams", f"{streams:g}", streams <= 2 * fewest)
            )
        return said


if __name__ == "__main__":
    main(Today())
