"""APT-F11: goodput beside constant UDP of 10 to 50 % of the rate.

The link of F5. What the row should show: APT at 0.85 of what the UDP leaves, at every load.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Link
from apt.claims import steady_from_s
from apt.grid_row import GridRow, at_least, judge_grid
from apt.row import Read, Results
from apt.store import Result
from figures import Verdict
from harness import run_row
from mpx_lab.series import goodput_bps

SHARES = {"quick": (0.5,), "full": (0.1, 0.2, 0.3, 0.4, 0.5)}


class F11(GridRow):
    """See the head of this file."""

    name = "f11"
    axis = "UDP, % of the rate"

    def links(self, effort: str) -> Sequence[Link]:
        """The paper's five loads, or the most."""
        return [Link(udp_share=share) for share in SHARES[effort]]

    def value(self, link: Link) -> float:
        """The load."""
        return link.udp_share * 100

    def table(self, results: Results) -> Sequence[str]:
        """With how much of the UDP arrived beside each tool."""
        lines = list(super().table(results))
        for (link, tool), runs in results.items():
            arrived = ", ".join(f"{_udp_bps(run) / 1e6:.1f}" for run in runs)
            lines.append(f"{self.label(link)} %, {tool}: Mbit/s of UDP that arrived: {arrived}")
        return lines


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether F11 shows what it should, and ours what we claim."""

    def shown(links: Sequence[Link], found: Read) -> Iterable[Verdict]:
        return at_least(links, found, 0.85)

    return judge_grid(stored, shown)


def _udp_bps(run: Result) -> float:
    """Return the goodput of the UDP while the transfer was steady."""
    began_s, end_s = run.transfers[0].began_s, run.goodput.end_s
    return goodput_bps(run.run.goodput("udp"), began_s + steady_from_s(run), began_s + end_s)


if __name__ == "__main__":
    run_row(F11(), judge)
