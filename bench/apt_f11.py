"""APT-F11: goodput beside constant UDP of 10 to 50 % of the rate.

The link of F5. What the row should show: APT at 0.85 of what the UDP leaves, at every load.
"""

from collections.abc import Sequence

from apt.cell import Link
from apt.grid_row import GridRow, at_least
from apt.row import Results, main
from figures import Verdict

SHARES = {"quick": (0.5,), "full": (0.1, 0.2, 0.3, 0.4, 0.5)}


class F11(GridRow):
    """See the head of this file."""

    name = "f11"
    doc = __doc__ or ""
    axis = "UDP, % of the rate"

    def links(self, effort: str) -> Sequence[Link]:
        """The paper's five loads, or the least and the most."""
        return [Link(udp_share=share) for share in SHARES[effort]]

    def value(self, link: Link) -> float:
        """The load."""
        return link.udp_share * 100

    def shown(self, links: Sequence[Link], results: Results) -> Sequence[Verdict]:
        """What F11 should show."""
        return at_least(links, results, 0.85)


if __name__ == "__main__":
    main(F11())
