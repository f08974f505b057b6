"""A row that varies one parameter of the link: goodput of every tool and the streams found."""

import statistics
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from figures import Verdict, median

from apt.cell import Cell, Link
from apt.claims import claims_of, median_steady_bps, read, steady_bps
from apt.measure import rank_correlation
from apt.row import Read, Results, ToolRow, bps_of, by_link_and_tool, repeated
from apt.store import Result
from apt.tools import FIXED, PAPER, fixed

TUNED_S = 92.0  # a minute and a half of data
FIXED_S = {"quick": 32.0, "full": 92.0}
STOCK = ("guc", "guc-p4")
NOT_THE_BEST = 0.95
STEADY = "steady Mbit/s: median (min to max), mean and 95 %"


class GridRow(ToolRow):
    """One curve per tool over the parameter that is varied."""

    axis: str  # the parameter that is varied, with its unit
    numbers: Sequence[int] = (4, 8, 16, 32)  # the same on every link
    repetitions: Mapping[str, int] = {"quick": 3, "full": 5}

    @abstractmethod
    def links(self, effort: str) -> Sequence[Link]:
        """Return the links, in the order of what is varied."""

    @abstractmethod
    def value(self, link: Link) -> float:
        """Return what is varied, in the unit of `axis`."""

    def label(self, link: Link) -> str:
        """Return what is varied, as a table shows it."""
        return f"{self.value(link):g}"

    def cells(self, effort: str) -> Sequence[Cell]:
        """Tuned tools for as long as a search takes; fixed numbers at full effort as long, else shorter.

        Their last half counts. What a stream of 64 KB, 45 segments, loses when they overflow a queue at first
        it has won back after cbrt(45 * 0.3 / 0.4) = 3.2 s, so that 16 s are enough for some rounds of that.
        """
        tools = dict.fromkeys(("auto", PAPER), TUNED_S)
        tools |= dict.fromkeys((*map(fixed, self.numbers), *STOCK), FIXED_S[effort])
        return repeated(
            lambda repetition: [
                Cell(link, tool, seconds, repetition)
                for link in self.links(effort)
                for tool, seconds in tools.items()
            ],
            self.repetitions[effort],
        )

    def table(self, results: Results) -> Sequence[str]:
        """A line for each link and tool."""
        lines = [
            f"| {self.axis} | tool | {STEADY} | of the ceiling | streams |",
            "|---|---|---|---|---|",
        ]
        for (link, tool), runs in results.items():
            share = median_steady_bps(runs) / link.ceiling_bps
            counts = [run.late_streams() for run in runs]
            found = ", ".join(f"{count:.0f}" for count in counts if count is not None) or "-"
            steady = bps_of(list(map(steady_bps, runs)))
            lines.append(f"| {self.label(link)} | {tool} | {steady} | {share:.2f} | {found} |")
        return lines

    def read(self, run: Result) -> Any:
        """What all grids judge."""
        return read(run)

    def draw(self, results: Results, axes: Any) -> None:
        """Steady goodput over what is varied, and the streams found."""
        other = axes.twinx()
        for tool in dict.fromkeys(tool for _, tool in results):
            runs = {link: found for (link, name), found in results.items() if name == tool}
            xs = [self.value(link) for link in runs]
            is_tuned = not tool.startswith((FIXED, *STOCK))
            axes.plot(
                xs,
                [median_steady_bps(found) / 1e6 for found in runs.values()],
                marker="o",
                linewidth=1.8 if is_tuned else 0.8,
                label=tool,
            )
            if is_tuned:
                ends = [statistics.median(map(streams_found, found)) for found in runs.values()]
                other.plot(xs, ends, linestyle=":", marker="x")
        axes.set(xlabel=self.axis, ylabel="steady goodput, Mbit/s", ylim=(0, None))
        other.set(ylabel="streams found (dotted)", ylim=(0, None))
        axes.legend(fontsize="small", ncols=2)


Shown = Callable[[Sequence[Link], Read], Iterable[Verdict]]


def judge_grid(stored: Mapping[str, Any], shown: Shown) -> list[Verdict]:
    """Return what a row should show, the paper's, then what we claim on every link."""
    found = by_link_and_tool(stored)
    links = list(dict.fromkeys(link for link, _ in found))
    said = list(shown(links, found))
    for link in links:
        said += claims_of(link, {tool: runs for (where, tool), runs in found.items() if where == link})
    return said


def streams_found(run: Result) -> float:
    """Return the streams that a tuned run has found, see Result.late_streams."""
    found = run.late_streams()
    assert found is not None
    return found


def at_least(links: Sequence[Link], found: Read, share: float, tool: str = "paper") -> list[Verdict]:
    """Say of each link whether a tool's steady goodput is such a share of what the UDP leaves of its rate."""
    said = []
    for link in links:
        left_bps = link.rate_bps * (1 - link.udp_share)
        steady = median(found[link, tool], "steady_bps") / left_bps
        said.append(
            Verdict(f"{link.name}: {tool} at {share:g} of the link", f"{steady:.2f}", steady >= share)
        )
    return said


def grows(row: GridRow, links: Sequence[Link], found: Read, tool: str = "paper") -> Verdict:
    """Say whether the streams that were found grow with what is varied."""
    pairs = [(row.value(link), run["streams"]) for link in links for run in found[link, tool]]
    rank = rank_correlation(*zip(*pairs, strict=True))
    return Verdict(
        f"streams of {tool} grow with {row.axis}: rank correlation > 0.8", f"{rank:.2f}", rank > 0.8
    )


def no_number_for_all(row: GridRow, links: Sequence[Link], found: Read) -> Verdict:
    """Say whether every fixed number is clearly below the best of them on some link."""
    least = dict.fromkeys(row.numbers, 1.0)
    for link in links:
        steady = {n: median(found[link, fixed(n)], "steady_bps") for n in row.numbers}
        for n, bps in steady.items():
            least[n] = min(least[n], bps / max(steady.values()))
    told = ", ".join(f"{n}: {share:.2f}" for n, share in least.items())
    kept = all(share < NOT_THE_BEST for share in least.values())
    return Verdict(f"each fixed number is below {NOT_THE_BEST:g} of the best somewhere", told, kept)
