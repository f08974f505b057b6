"""The default tuner on links drawn at random, with real TCP, against the best fixed number of streams.

    python bench/tuner_links.py --simulated [--seed N] [--links 1-60] [--effort full] [--any-code]

In the table: `fewest enough` is the smallest of the fixed numbers that gives 97 % of the best, `streams late`
the tuner's mean number in the last third, `reached` the time until 90 % of the best. Each run is named when
it has ended; a link takes two minutes of a processor, six or more with `--effort full`.

Each link draws its direction, server, congestion control, rate, RTT, queue, loss, windows, neighbours and
changes half-way (bench/apt/random_links.py). Fixed numbers run once, the best two three times; so does the
tuner. Goodput counts from the first byte, over 60 s (`--effort quick`: 30 s, and all once).

Goals without neighbours (`fair`, the kernel's congestion control): at least 0.95 of the best fixed number in
the median, 0.90 for nine of ten links, 0.80 at the worst; nine of ten reach 90 % of the best within 1.5 times
its own time, or 3 s or 40 RTT, whichever is longest; and use at most 1.5 times the fewest streams that give
97 %, or 1.5 times four.
With neighbours the same shares hold for `fast`.
"""

import argparse
import math
import re
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import harness
from apt.cell import Cell, Link
from apt.code import code
from apt.measure import reached_s
from apt.random_links import Drawn, draw
from apt.simulated import measure_all
from apt.store import Result, Store
from apt.tools import DOWN, fixed
from figures import Spread, Verdict, machine, quantile
from mpx_lab.simulator.kernel import built_kernel

from mpx.errors import UsageError

NUMBERS = (1, 4, 16, 64, 128)
ALONE, BESIDE = "auto", "mpx-fast"  # the tool without neighbours, and with them
SECONDS = {"quick": 30.0, "full": 60.0}
ENDING_S = 2.0  # that a cell lasts longer, as goodput counts from the first byte
REPETITIONS = {"quick": 1, "full": 3}
BEST = 2  # so many fixed numbers are repeated
ENOUGH = 0.97  # of the best: the fewest streams that give that are enough
REACHED = 0.9  # of the best
GOALS = ((0.5, 0.95), (0.1, 0.90), (0.0, 0.80))  # the share of the best at these quantiles
TIMES, SOON_S, SOON_RTT = 1.5, 3.0, 40.0
STREAMS = 1.5

Runs = Mapping[str, Sequence[Result]]  # by tool
Results = Sequence[tuple[Drawn, Runs]]


class TunerLinks(harness.CellRow[Results]):
    """See the head of this file."""

    name = "tuner-links"
    folder = "reports/tuner-links"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add which links are drawn, and whose runs count."""
        super().arguments(parser)
        parser.add_argument(
            "--simulated", action="store_true", help="measure what is missing, in simulated time"
        )
        parser.add_argument("--seed", type=int, default=1, help="of the draw of all links (default 1)")
        parser.add_argument(
            "--links", type=_range, default="1-60", help="which of them: FIRST-LAST (default 1-60)"
        )
        parser.add_argument("--at-once", type=int, default=2, help="so many machines at a time (default 2)")
        parser.add_argument(
            "--any-code", action="store_true", help="also use runs of other versions of the code"
        )

    def results(self, options: argparse.Namespace) -> Results:
        """Measure missing cells, the repetitions once the best fixed numbers are known; print the table."""
        links = [draw(number, options.seed) for number in options.links]
        store = Store(options.data / f"seed-{options.seed}", None if options.any_code else code())
        seconds = SECONDS[options.effort] + ENDING_S
        print(machine("drawn for each link"))
        for repetition in range(1, REPETITIONS[options.effort] + 1):
            cells = [
                _cell(drawn, tool, seconds, repetition)
                for drawn in links
                for tool in (*_numbers(drawn, store, seconds, repetition), _ours(drawn.link))
            ]
            missing = [cell for cell in cells if not store.has(cell)]
            if missing and options.simulated and not options.measure_nothing:
                kernel = built_kernel(partial(print, file=sys.stderr))
                with harness.measuring(len(missing), len(cells)):
                    for failed in measure_all(kernel, missing, store, options.at_once):
                        sys.stderr.write(f"{failed}\n")
        found = [(drawn, _runs(drawn, store, seconds, options.effort)) for drawn in links]
        times = REPETITIONS[options.effort]
        whole = [(drawn, runs) for drawn, runs in found if _is_whole(drawn, runs, times)]
        if not whole:
            raise UsageError(f"no link of this draw is stored in {store.folder}; --simulated measures them")
        print("\n".join(self.table(whole)))
        if len(whole) < len(links):
            missing_links = [str(drawn.number) for drawn, runs in found if not _is_whole(drawn, runs, times)]
            raise UsageError(f"no verdicts: links without all of their runs: {', '.join(missing_links)}")
        return whole

    def table(self, results: Results) -> Sequence[str]:
        """Each link, what the best fixed number and the tuner carried, and how soon."""
        lines = [
            "| link | best fixed, Mbit/s | with | fewest enough | tuner, Mbit/s | share | streams late "
            "| reached, s | best fixed, s |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for each in self.measured(results):
            share, best_bps = Spread(each["shares"]), each["best_bps"] / 1e6
            lines.append(
                f"| {each['number']}: {'down' if each['down'] else 'up'}, {each['link']} | {best_bps:.1f} "
                f"| {each['best']} | {each['fewest']} | {best_bps * share.median:.1f} | {share:.2f} "
                f"| {each['streams']:.0f} | {_shown(each['reached_s'])} | {_shown(each['best_reached_s'])} |"
            )
        return lines

    def measured(self, results: Results) -> list[dict[str, Any]]:
        """Return what is judged of each link, as JSON holds it."""
        return [_judged(drawn, runs) for drawn, runs in results]

    def draw(self, results: Results, axes: Any) -> None:
        """The shares of the best fixed number, in order."""
        measured = self.measured(results)
        for alone, label in ((True, "without neighbours"), (False, "with neighbours, fast")):
            shares = sorted(statistics.median(each["shares"]) for each in measured if each["alone"] == alone)
            if shares:
                at = [(i + 0.5) / len(shares) for i in range(len(shares))]
                axes.plot(at, shares, marker=".", label=f"{label}, {len(shares)} links")
        axes.axhline(GOALS[0][1], color="grey", linewidth=0.8)
        axes.set(xlabel="share of links", ylabel="goodput, of the best fixed number", ylim=(0, None))
        axes.legend()


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached."""
    for alone, name in ((True, "without neighbours"), (False, "with neighbours, fast")):
        links = [each for each in stored if each["alone"] == alone]
        if not links:
            continue
        shares = [statistics.median(each["shares"]) for each in links]
        for at, least in GOALS:
            share = quantile(shares, at) if at else min(shares)
            limit = f"{name}: {least} of the best fixed number {_of_links(at)}"
            yield Verdict(limit, f"{share:.2f} of {len(links)} links", share >= least)
        if not alone:
            continue
        soon = [each["reached_s"] is not None and each["reached_s"] <= _soon_s(each) for each in links]
        limit = f"{name}: nine of ten reach {REACHED:.0%} of the best soon"
        yield Verdict(limit, f"{sum(soon)} of {len(soon)}", sum(soon) >= 0.9 * len(soon))
        over = [each["streams"] / max(4, each["fewest"]) for each in links]
        limit = f"{name}: {STREAMS} times the fewest streams that give {ENOUGH:.0%}, nine of ten"
        yield Verdict(limit, f"{quantile(over, 0.9):.2f}", quantile(over, 0.9) <= STREAMS)


def _of_links(at: float) -> str:
    return {0.5: "in the median", 0.1: "for nine of ten links", 0.0: "at the worst"}[at]


def _soon_s(each: Mapping[str, Any]) -> float:
    return max(TIMES * (each["best_reached_s"] or 0.0), SOON_S, SOON_RTT * each["rtt_s"])


def _shown(reached: float | None) -> str:
    return "never" if reached is None else f"{reached:.1f}"


def _range(text: str) -> range:
    """Return the numbers of --links."""
    found = re.fullmatch(r"([1-9][0-9]*)(?:-([1-9][0-9]*))?", text)
    numbers = range(int(found[1]), int(found[2] or found[1]) + 1) if found else range(0)
    if not numbers:
        raise argparse.ArgumentTypeError(f"{text} is not FIRST-LAST, as 1-60 is")
    return numbers


def _ours(link: Link) -> str:
    return BESIDE if link.beside else ALONE


def _cell(drawn: Drawn, tool: str, seconds: float, repetition: int) -> Cell:
    return Cell(drawn.link, tool + DOWN * drawn.down, seconds, repetition)


def _goodput_bps(run: Result) -> float:
    return run.goodput.mean_bps(0.0, run.goodput.end_s)


def _mean_bps(runs: Sequence[Result]) -> float:
    return statistics.mean(map(_goodput_bps, runs))


def _numbers(drawn: Drawn, store: Store, seconds: float, repetition: int) -> list[str]:
    """Return the fixed numbers of a repetition: all in the first one, then those that were best in it."""
    if repetition == 1:
        return [fixed(number) for number in NUMBERS]
    cells = {fixed(number): _cell(drawn, fixed(number), seconds, 1) for number in NUMBERS}
    known = {tool: _goodput_bps(store.load(cell)) for tool, cell in cells.items() if store.has(cell)}
    return sorted(known, key=lambda tool: -known[tool])[:BEST]


def _runs(drawn: Drawn, store: Store, seconds: float, effort: str) -> Runs:
    """Return what is stored of a link."""
    cells = [
        (tool, _cell(drawn, tool, seconds, repetition))
        for tool in (*map(fixed, NUMBERS), _ours(drawn.link))
        for repetition in range(1, REPETITIONS[effort] + 1)
    ]
    runs: dict[str, list[Result]] = {}
    for tool, cell in cells:
        if store.has(cell):
            runs.setdefault(tool, []).append(store.load(cell))
    return runs


def _is_whole(drawn: Drawn, runs: Runs, times: int) -> bool:
    """Whether all runs are stored, those of the best fixed numbers and of the tuner so many times."""
    repeated = [tool for tool, each in runs.items() if len(each) >= times]
    return _ours(drawn.link) in repeated and len(repeated) > BEST and all(fixed(n) in runs for n in NUMBERS)


def _judged(drawn: Drawn, runs: Runs) -> dict[str, Any]:
    """Return what is judged of one link."""
    fixed_bps = {number: _mean_bps(runs[fixed(number)]) for number in NUMBERS}
    best = max(fixed_bps, key=lambda number: fixed_bps[number])
    best_bps, ours = fixed_bps[best], runs[_ours(drawn.link)]

    def reached(each: Sequence[Result]) -> float | None:
        median_s = statistics.median(reached_s(run.goodput.risen(), REACHED * best_bps) for run in each)
        return median_s if median_s < math.inf else None  # JSON knows no infinity

    return {
        "number": drawn.number,
        "link": drawn.link.name,
        "rtt_s": drawn.link.rtt_s,
        "down": drawn.down,
        "alone": not drawn.link.beside,
        "best": best,
        "best_bps": best_bps,
        "fewest": min(number for number, bps in fixed_bps.items() if bps >= ENOUGH * best_bps),
        "shares": [_goodput_bps(run) / best_bps for run in ours],
        "streams": statistics.median(run.late_streams() or math.inf for run in ours),
        "reached_s": reached(ours),
        "best_reached_s": reached(runs[fixed(best)]),
    }


if __name__ == "__main__":
    harness.run_row(TunerLinks(), judge)
