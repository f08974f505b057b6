"""--policy scavenger beside one CUBIC stream that comes, stays for a minute and goes again.

What the row should show, in the median of the runs: the CUBIC stream has at least 95 % of what it has alone,
and within 10 s of its end the scavenger takes 80 % of the link. On three links of 100 Mbit/s: 20, 60 and
128 ms, queues of 1, 0.25 and 0.75 products of bandwidth and delay. The stream is there first, too (`first`):
then the empty path is not seen before.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import PAYLOAD_SHARE, Cell, Link
from apt.row import Results, ToolRow, by_link_and_tool
from apt.store import Result
from figures import Spread, Verdict
from harness import run_row
from mpx_lab.series import goodput_bps
from neighbours import wan

RATE_BPS = 100_000_000
PATHS = {"20 ms": (0.020, 1.0), "60 ms": (0.060, 0.25), "128 ms": (0.128, 0.75)}
TURNS = {"quick": 1, "full": 5}
STAYS_S, COMES_S, SECONDS = 60.0, 30.0, 130.0
SETTLED_S, SOON_S = 10.0, 10.0
LEAVES, TAKES = 0.95, 0.80
OURS, ALONE = "mpx-scavenger", "mpx-idle"


def link_of(path: str, comes_s: float) -> Link:
    """Return the link, with the stream that comes after so long."""
    rtt_s, queue_bdp = PATHS[path]
    square = f"tcp-square(congestion=cubic, on={STAYS_S:g}s, off=1000s, after={comes_s:g}s)"
    return wan(RATE_BPS, rtt_s, queue_bdp, square)


LINKS = {
    (path, when): link_of(path, comes_s)
    for path in PATHS
    for when, comes_s in (("later", COMES_S), ("first", 0.0))
}


class Scavenging(ToolRow):
    """See the head of this file; what the stream has alone is measured beside a copy of hardly any rate."""

    name = "ops-scavenger"

    def cells(self, effort: str) -> Sequence[Cell]:
        """The copy, and one that is not felt, so that the stream is alone."""
        return [
            Cell(link, tool, SECONDS, turn, waits=False)
            for turn in range(1, TURNS[effort] + 1)
            for link in LINKS.values()
            for tool in (OURS, ALONE)
        ]

    def table(self, results: Results) -> Sequence[str]:
        """What the stream had, and ours before, beside and after it."""
        lines = [
            "| path | the stream comes | has, of what it has alone | ours beside it, Mbit/s "
            "| 80 % of the link after |",
            "|---|---|---|---|---|",
        ]
        for (path, when), link in LINKS.items():
            runs, alone = results.get((link, OURS), []), results.get((link, ALONE), [])
            if runs and alone:
                shares = Spread(_shares(list(map(_stream_bps, runs)), list(map(_stream_bps, alone))))
                beside = Spread([_ours_bps(run, *_beside(run)) / 1e6 for run in runs])
                back = Spread([_back_s(run) for run in runs])
                lines.append(f"| {path} | {when} | {shares:.3f} | {beside:.1f} | {back:.1f} s |")
        return lines

    def read(self, run: Result) -> Any:
        """What the stream had while it was there, and how soon ours was back after it."""
        return {"stream_bps": _stream_bps(run), "back_s": _back_s(run)}

    def draw(self, results: Results, axes: Any) -> None:
        """Both over time, on the first link."""
        run = results[LINKS["20 ms", "later"], OURS][0]
        began_s = run.transfers[0].began_s
        points = run.goodput.rates_bps()
        axes.plot([began_s + t for t, _ in points], [bps / 1e6 for _, bps in points], label="scavenger")
        seconds = range(int(began_s + run.goodput.end_s) - 1)
        stream = run.run.goodput("beside")
        axes.plot(list(seconds), [goodput_bps(stream, t, t + 1) / 1e6 for t in seconds], label="CUBIC")
        axes.set(xlabel="seconds", ylabel="goodput, Mbit/s", ylim=(0, None))
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether it yields, and whether it is back, in the median of the runs."""
    found = by_link_and_tool(stored)
    for (path, when), link in LINKS.items():
        had, alone = ([run["stream_bps"] for run in found[link, tool]] for tool in (OURS, ALONE))
        share, back = Spread(_shares(had, alone)), Spread([run["back_s"] for run in found[link, OURS]])
        where = f"{path}, the stream comes {when}"
        yield Verdict(f"{where}: leaves {LEAVES:.0%}", f"{share:.3f}", share.median >= LEAVES)
        yield Verdict(f"{where}: back within {SOON_S:g} s", f"{back:.1f} s", back.median <= SOON_S)


def _stay(run: Result) -> tuple[float, float]:
    """Return when the stream begins and ends, in the run's time."""
    edges = [(float(row["t_s"]), row["on"] == "1") for row in run.run.rows("flows/beside.phases.csv")]
    return next(t for t, on in edges if on), next(t for t, on in edges if not on)


def _beside(run: Result) -> tuple[float, float]:
    """Return the time in which it had come up."""
    from_s, until_s = _stay(run)
    return from_s + SETTLED_S, until_s


def _ours_bps(run: Result, from_s: float, until_s: float) -> float:
    began_s = run.transfers[0].began_s
    return run.goodput.mean_bps(max(0.0, from_s - began_s), until_s - began_s)


def _stream_bps(run: Result) -> float:
    return goodput_bps(run.run.goodput("beside"), *_beside(run))


def _shares(runs: Sequence[float], alone: Sequence[float]) -> list[float]:
    """Return what the stream had in each run, over what it had beside a copy that is not felt."""
    return [run / other for run, other in zip(runs, alone, strict=True)]


def _back_s(run: Result) -> float:
    """Return how long after the end of the stream a second of ours carried 80 % of the link."""
    _, end_s = _stay(run)
    steps = range(int((SECONDS - end_s) * 10) - 20)
    full_bps = TAKES * RATE_BPS * PAYLOAD_SHARE
    rates = ((step / 10 + 1, _ours_bps(run, end_s + step / 10, end_s + step / 10 + 1)) for step in steps)
    return next((after_s for after_s, bps in rates if bps >= full_bps), float("inf"))


if __name__ == "__main__":
    run_row(Scavenging(), judge)
