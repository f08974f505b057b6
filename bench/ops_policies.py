"""What each policy gets in each class of background, and what it leaves: the figures of docs/policy.md.

mpx with its tuner for two minutes on 100 Mbit/s, 60 ms, a queue of one product of bandwidth and delay, beside
nobody, one or two streams (full: also with a quarter and with four products). CUBIC and BBR by name are told
for comparison. What the row should show: `fair` leaves more than `fast` beside CUBIC, and has more than CUBIC
beside BBR; `scavenger` leaves one CUBIC stream 95 % of what it has alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Cell, Link
from apt.row import Results, ToolRow, by_link_and_tool
from apt.store import Result
from figures import Verdict, median
from harness import run_row
from neighbours import mbps, median_of, neighbours_bps, read, theirs_bps, tool_bps, wan

C, B = "tcp(congestion=cubic)", "tcp(congestion=bbr)"
BACKGROUNDS = {"none": "", "C": C, "B": B, "CC": f"{C} + {C}", "BC": f"{B} + {C}", "BB": f"{B} + {B}"}
QUEUES = {"quick": (1.0,), "full": (0.25, 1.0, 4.0)}
TURNS = {"quick": 1, "full": 3}
TOOLS = ("mpx-fair", "mpx-fast", "mpx-scavenger", "mpx-cubic", "mpx-bbr")
SECONDS, FROM_S = 120.0, 60.0
ALONE = "plain-cubic"
LEAVES = 0.95


def link_of(queue_bdp: float, background: str) -> Link:
    """Return the link with that background."""
    return wan(100_000_000, 0.060, queue_bdp, BACKGROUNDS[background])


class Policies(ToolRow):
    """See the head of this file."""

    name = "ops-policies"

    def cells(self, effort: str) -> Sequence[Cell]:
        """Every policy beside every background, and CUBIC alone."""
        return [
            Cell(link_of(queue, background), tool, SECONDS, turn)
            for turn in range(1, TURNS[effort] + 1)
            for queue in QUEUES[effort]
            for background in BACKGROUNDS
            for tool in (*TOOLS, *([ALONE] if background == "none" else []))
        ]

    def table(self, results: Results) -> Sequence[str]:
        """Ours and theirs, after the first minute."""
        lines = ["| queue, packets | beside | tool | ours, Mbit/s | theirs, each |", "|---|---|---|---|---|"]
        for (link, tool), runs in results.items():
            count = len(link.neighbours)
            theirs = [mbps(runs, lambda run, i=i: neighbours_bps(run, FROM_S)[i]) for i in range(count)]
            ours = mbps(runs, lambda run: tool_bps(run, FROM_S))
            beside = next(name for name, specs in BACKGROUNDS.items() if specs == link.beside)
            lines.append(
                f"| {link.queue_packets} | {beside} | {tool} | {ours} | {', '.join(theirs) or '-'} |"
            )
        return lines

    def read(self, run: Result) -> Any:
        """What both sides had, once it was steady."""
        return read(run, FROM_S)

    def draw(self, results: Results, axes: Any) -> None:
        """Shares of the link, ours below, on the queue of one product."""
        places = [(background, tool) for background in BACKGROUNDS for tool in TOOLS]
        ours = [median_of(results[link_of(1.0, b), t], lambda r: tool_bps(r, FROM_S)) for b, t in places]
        theirs = [median_of(results[link_of(1.0, b), t], lambda r: theirs_bps(r, FROM_S)) for b, t in places]
        at = range(len(places))
        axes.bar(at, [bps / 1e6 for bps in ours], label="ours")
        axes.bar(at, [bps / 1e6 for bps in theirs], bottom=[bps / 1e6 for bps in ours], label="theirs")
        axes.set_xticks(
            list(at), [f"{b} {t.removeprefix('mpx-')}" for b, t in places], rotation=90, fontsize="small"
        )
        axes.set_ylabel("goodput, Mbit/s")
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether the policies are what they are called, on the queue of one product."""
    found = by_link_and_tool(stored)

    def had(background: str, tool: str, key: str) -> float:
        return median(found[link_of(1.0, background), tool], key)

    yields = had("C", "mpx-scavenger", "theirs_bps") / had("none", ALONE, "ours_bps")
    limit = f"scavenger leaves CUBIC {LEAVES:.0%} of what it has alone"
    yield Verdict(limit, f"{yields:.1%}", yields >= LEAVES)
    fair, fast = (had("C", tool, "theirs_bps") / 1e6 for tool in ("mpx-fair", "mpx-fast"))
    yield Verdict("fair leaves CUBIC more than fast", f"{fair:.1f}, {fast:.1f} Mbit/s", fair > fast)
    among, cubic = (had("B", tool, "ours_bps") / 1e6 for tool in ("mpx-fair", "mpx-cubic"))
    yield Verdict("fair has more beside BBR than CUBIC", f"{among:.1f}, {cubic:.1f} Mbit/s", among > cubic)


if __name__ == "__main__":
    run_row(Policies(), judge)
