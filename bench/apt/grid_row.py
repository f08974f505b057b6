"""A row that varies one thing of the link: goodput of every tool and the streams found, link by link."""

import statistics
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from figures import Verdict

from apt.cell import Cell, Link
from apt.claims import best_fixed, claims_of, steady_bps
from apt.measure import rank_correlation
from apt.row import Results, Row, repeated, spread
from apt.store import Result
from apt.tools import FIXED, fixed, is_mpx

TUNED_S = 62.0  # a minute of data
FIXED_S = {"quick": 12.0, "full": 62.0}
STOCK = ("guc", "guc-p4")


class GridRow(Row):
    """One curve per tool over what is varied."""

    axis: str  # what is varied, with its unit
    numbers: Sequence[int] = (4, 8, 16)  # the paper's fixed ones
    tuned: Sequence[str] = ("auto", "paper")
    repetitions: Mapping[str, int] = {"quick": 3, "full": 5}

    @abstractmethod
    def links(self, effort: str) -> Sequence[Link]:
        """Return the links, in the order of what is varied."""

    @abstractmethod
    def value(self, link: Link) -> float:
        """Return what is varied, in the unit of `axis`."""

    @abstractmethod
    def shown(self, links: Sequence[Link], results: Results) -> Sequence[Verdict]:
        """Say whether the row shows what it should."""

    def cells(self, effort: str) -> Sequence[Cell]:
        """Tuned tools for as long as a search takes; fixed numbers until they are steady."""
        return repeated(
            lambda repetition: [
                cell
                for link in self.links(effort)
                for cell in (
                    *(Cell(link, tool, TUNED_S, repetition) for tool in self.tuned),
                    *(Cell(link, fixed(n), FIXED_S[effort], repetition) for n in self.fixed_for(link)),
                    *(Cell(link, tool, FIXED_S[effort], repetition) for tool in STOCK),
                )
            ],
            self.repetitions[effort],
        )

    def fixed_for(self, link: Link) -> list[int]:
        """Return the paper's numbers, and the power of two that fills this link."""
        filling = 1
        while filling < link.streams_to_fill:
            filling *= 2
        return sorted({*self.numbers, filling})

    def table(self, results: Results) -> Sequence[str]:
        """A line for each link and tool."""
        lines = [
            f"| {self.axis} | tool | steady Mbit/s, median (min to max) | of the ceiling | streams |",
            "|---|---|---|---|---|",
        ]
        for (link, tool), runs in results.items():
            steady = [steady_bps(run) for run in runs]
            ends = ", ".join(str(run.streams_at(run.goodput.end_s)) for run in runs)
            told = ends if is_mpx(tool) and not tool.startswith(FIXED) else "-"
            lines.append(
                f"| {self.value(link):g} | {tool} | {spread([bps / 1e6 for bps in steady])} "
                f"| {statistics.median(steady) / link.ceiling_bps:.2f} | {told} |"
            )
        return lines

    def verdicts(self, results: Results) -> Sequence[Verdict]:
        """The paper's, then ours on every link."""
        links = list(dict.fromkeys(link for link, _ in results))
        said = list(self.shown(links, results))
        for link in links:
            said += claims_of(link, on_link(results, link))
        return said

    def draw(self, results: Results, axes: Any) -> None:
        """Steady goodput over what is varied, and the streams found."""
        other = axes.twinx()
        for tool in dict.fromkeys(tool for _, tool in results):
            runs = {link: found for (link, name), found in results.items() if name == tool}
            xs = [self.value(link) for link in runs]
            medians = [statistics.median(map(steady_bps, found)) / 1e6 for found in runs.values()]
            axes.plot(xs, medians, marker="o", linewidth=1.8 if tool in self.tuned else 0.8, label=tool)
            if tool in self.tuned:
                ends = [statistics.median(map(streams_at_end, found)) for found in runs.values()]
                other.plot(xs, ends, linestyle=":", marker="x", label=f"{tool}: N")
        axes.set(xlabel=self.axis, ylabel="steady goodput, Mbit/s", ylim=(0, None))
        other.set(ylabel="streams found (dotted)", ylim=(0, None))
        axes.legend(fontsize="small", ncols=2)


def on_link(results: Results, link: Link) -> dict[str, Sequence[Result]]:
    """Return the runs on one link by tool."""
    return {tool: runs for (where, tool), runs in results.items() if where == link}


def streams_at_end(run: Result) -> int:
    """Return how many streams a tuned run ended with."""
    return run.streams_at(run.goodput.end_s) or 0


def at_least(links: Sequence[Link], results: Results, share: float, tool: str = "paper") -> list[Verdict]:
    """Say of each link whether a tool's steady goodput is such a share of what the UDP leaves of its rate."""
    said = []
    for link in links:
        left_bps = link.rate_bps * (1 - link.udp_share)
        steady = statistics.median(map(steady_bps, results[link, tool])) / left_bps
        said.append(
            Verdict(f"{link.name}: {tool} at {share:g} of the link", f"{steady:.2f}", steady >= share)
        )
    return said


def grows(row: GridRow, links: Sequence[Link], results: Results, tool: str = "paper") -> Verdict:
    """Say whether the streams that were found grow with what is varied."""
    pairs = [(row.value(link), streams_at_end(run)) for link in links for run in results[link, tool]]
    rank = rank_correlation(*zip(*pairs, strict=True))
    return Verdict(
        f"streams of {tool} grow with {row.axis}: rank correlation > 0.8", f"{rank:.2f}", rank > 0.8
    )


def no_number_for_all(links: Sequence[Link], results: Results) -> Verdict:
    """Say whether no fixed number is the best on every link."""
    best = {best_fixed(on_link(results, link))[0] for link in links}
    return Verdict("no fixed number is the best everywhere", ", ".join(sorted(best)), len(best) > 1)
