"""What a copy leaves to others beside it: as much as four ordinary streams (`globus-url-copy -p 4`) do.

100 Mbit/s, 60 ms, queues of one product of bandwidth and delay (full: also half and two). The neighbours
fill the link first; of the copy's first 75 s the last minute counts. The ordinary streams are CUBIC beside
CUBIC, and BBR beside any BBR. Also with 0.1 % of the frames lost, the same ones in each pair of runs (in
simulated time).

To reach: neighbours keep at least 0.9 of what they keep beside four ordinary streams in the median run, and
0.8 in the worst. And `--share 1` beside one CUBIC stream: Jain's index at most 0.02 below that of one
ordinary stream.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apt.cell import Cell, Link
from apt.row import Results, ToolRow, by_link_and_tool, repeated
from apt.store import Result
from apt.tools import DOWN, PLAIN, SHARE
from figures import Spread, Verdict
from harness import run_row
from neighbours import fairness, mbps, median_of, theirs_bps, tool_bps, wan

C, B = "tcp(congestion=cubic)", "tcp(congestion=bbr)"
BACKGROUNDS = {"C": C, "CC": f"{C} + {C}", "B": B, "BC": f"{B} + {C}", "BB": f"{B} + {B}"}
RATE_BPS, RTT_S, LOSS = 100_000_000, 0.060, 0.001
QUEUES = {"quick": (1.0,), "full": (0.5, 1.0, 2.0)}
TURNS = {"quick": 1, "full": 3}
OURS, ORDINARY = "mpx-fair", "guc-p4"
ONE, ORDINARY_ONE = f"{SHARE}1", PLAIN
TIE = 0.02
SECONDS, FROM_S, TO_S = 77.0, 15.0, 75.0
KEPT, WORST = 0.9, 0.8


def link_of(queue_bdp: float, background: str, loss: float = 0.0) -> Link:
    """Return the link with that background; ordinary streams are BBR where any of it is."""
    specs = BACKGROUNDS[background]
    made = wan(RATE_BPS, RTT_S, queue_bdp, specs, "bbr" if B in specs else "cubic")
    return replace(made, loss=loss)


def links(effort: str) -> list[Link]:
    """Return all links, those without loss first."""
    clean = [link_of(queue, background) for queue in QUEUES[effort] for background in BACKGROUNDS]
    return clean + [link_of(queue, name, LOSS) for queue in QUEUES[effort] for name in ("C", "B")]


class Share(ToolRow):
    """See the head of this file."""

    name = "share"
    folder = "reports/share"

    def cells(self, effort: str) -> Sequence[Cell]:
        """Both tools, up and down, beside each background; one stream of each beside one of CUBIC."""
        tools = {
            link: [tool + down for down in ("", DOWN) for tool in (ORDINARY, OURS)] for link in links(effort)
        }
        for queue in QUEUES[effort]:
            tools[link_of(queue, "C")] += [ORDINARY_ONE, ONE]
        return repeated(
            lambda turn: [Cell(link, tool, SECONDS, turn) for link, some in tools.items() for tool in some],
            TURNS[effort],
        )

    def table(self, results: Results) -> Sequence[str]:
        """Ours and theirs, beside mpx and beside ordinary streams."""
        lines = [
            "| queue, packets | loss | beside | way | ours, Mbit/s | theirs | ordinary | theirs | kept |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for (link, tool), runs in results.items():
            way = DOWN if tool.endswith(DOWN) else ""
            ordinary = results.get((link, ORDINARY + way))
            if tool != OURS + way or not ordinary:
                continue
            cells = [
                str(link.queue_packets),
                f"{link.loss:.1%}",
                _name(link),
                "down" if way else "up",
                *(mbps(each, of) for each in (runs, ordinary) for of in (_ours, _theirs)),
                f"{Spread(_kept([_theirs(run) for run in runs], [_theirs(run) for run in ordinary]))}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
        for (link, tool), runs in results.items():
            if tool in (ONE, ORDINARY_ONE):
                jain = Spread([fairness(run, FROM_S, TO_S) for run in runs])
                lines.append(
                    f"{tool} beside {_name(link)}, {link.queue_packets} packets: Jain's index {jain}"
                )
        return lines

    def read(self, run: Result) -> Any:
        """What both sides had, once it was steady."""
        return {"ours_bps": _ours(run), "theirs_bps": _theirs(run), "jain": fairness(run, FROM_S, TO_S)}

    def draw(self, results: Results, axes: Any) -> None:
        """What neighbours have beside both tools, uploads."""
        shown = [link for link, tool in results if tool == OURS]
        for number, tool in enumerate((ORDINARY, OURS)):
            at = [i + 0.4 * number for i in range(len(shown))]
            axes.bar(at, [median_of(results[link, tool], _theirs) / 1e6 for link in shown], 0.4, label=tool)
        names = [f"{_name(link)} {link.queue_packets}{' loss' if link.loss else ''}" for link in shown]
        axes.set_xticks(range(len(shown)), names, rotation=90, fontsize="small")
        axes.set_ylabel("neighbours' goodput, Mbit/s")
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say what each kind of neighbour keeps, over all queues."""
    found = by_link_and_tool(stored)
    for way in ("", DOWN):
        for loss in (0.0, LOSS):
            for background in BACKGROUNDS:
                kept = [
                    share
                    for (link, tool), runs in found.items()
                    if tool == OURS + way and _name(link) == background and link.loss == loss
                    for share in _kept(
                        [run["theirs_bps"] for run in runs],
                        [run["theirs_bps"] for run in found[link, ORDINARY + way]],
                    )
                ]
                if not kept:
                    continue
                where = f"{'down' if way else 'up'}, beside {background}{', with loss' if loss else ''}"
                median = statistics.median(kept)
                yield Verdict(f"{where}: {KEPT} kept in the median", f"{median:.2f}", median >= KEPT)
                yield Verdict(
                    f"{where}: {WORST} kept in the worst run", f"{min(kept):.2f}", min(kept) >= WORST
                )
    jain = {
        tool: statistics.median(
            run["jain"] for (_, name), runs in found.items() if name == tool for run in runs
        )
        for tool in (ONE, ORDINARY_ONE)
    }
    yield Verdict(
        f"--share 1: Jain's index at most {TIE} below that of one ordinary stream",
        f"{jain[ONE]:.3f} and {jain[ORDINARY_ONE]:.3f}",
        jain[ONE] >= jain[ORDINARY_ONE] - TIE,
    )


def _kept(beside_ours: Sequence[float], beside_ordinary: Sequence[float]) -> list[float]:
    """Return shares of what is kept beside ordinary streams, run by run."""
    return [ours / ordinary for ours, ordinary in zip(beside_ours, beside_ordinary, strict=True)]


def _name(link: Link) -> str:
    return next(name for name, specs in BACKGROUNDS.items() if specs == link.beside)


def _ours(run: Result) -> float:
    return tool_bps(run, FROM_S, TO_S)


def _theirs(run: Result) -> float:
    return theirs_bps(run, FROM_S, TO_S)


if __name__ == "__main__":
    run_row(Share(), judge)
