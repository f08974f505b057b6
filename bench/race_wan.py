"""The race over a wide-area network: mpx and other tools as people run them, whole programs from their start.

    python bench/race_wan.py --simulated [--effort full] [--document docs/race.md]

200 Mbit/s and 60 ms with a queue of one product of bandwidth and delay, a stock server, both directions; what
a minute moves on a clean link, with losses, beside other traffic, and where the path changes half-way; and
how long copies take that end, over several paths, too. `--effort full`: three seeds; quick: one, some three
hours of a processor. Each run is kept: what was interrupted goes on.

Goals: `--policy fast` has 0.98 of the best tool on the clean link, and is first elsewhere; the default is
first among those that leave their neighbours as much as globus-url-copy -p 4 does, to a tenth. Of copies that
end both are first; those over several paths carry three quarters of what these do at least.
"""

import argparse
import json
import math
import shutil
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import harness
from apt.cell import Cell
from apt.code import code, described
from apt.race_copies import KINDS, OURS, OURS_FAST
from apt.race_links import FAIR, FAST, ORDINARY, OTHERS, SCENARIOS, SHOWN, tools
from apt.row import gather
from apt.simulated import measure_all
from apt.store import Result, Store
from apt.tools import DOWN
from figures import Spread, Verdict
from mpx_lab.room import under_way
from mpx_lab.simulator.kernel import built_kernel
from mpx_lab.simulator.programs import SimulatedPrograms
from neighbours import theirs_bps

from mpx.errors import MpxError, UsageError

SECONDS, ENDING_S = 60.0, 2.0
TURNS = {"quick": 1, "full": 3}
WAYS = {"up": "", "down": DOWN}
COPIES = Path(__file__).parent / "apt" / "race_copies.py"
CLEAN, NEARLY, KEPT = "clean", 0.98, 0.9
PROGRAMS = ("globus-url-copy", "curl", "aria2c", "lftp", "rclone")
FILLED = 0.75  # of what several paths carry, with the start of a program
TIE = 1.02  # of two that differ by less neither is faster


@dataclass(frozen=True)
class Raced:
    """What was measured: runs by scenario, direction and tool; seconds by kind, direction and tool."""

    moved: Mapping[tuple[str, str], Mapping[str, Sequence[Result]]]
    took_s: Mapping[tuple[str, str], Mapping[str, float | None]]
    codes: str


class RaceWan(harness.CellRow[Raced]):
    """See the head of this file."""

    name = "race-wan"
    folder = "reports/race-wan"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add whose runs count, and where the page is written."""
        super().arguments(parser)
        parser.add_argument("--simulated", action="store_true", help="measure what is missing")
        parser.add_argument("--at-once", type=int, default=2, help="so many machines at a time (default 2)")
        parser.add_argument("--any-code", action="store_true", help="also use runs of other versions")
        parser.add_argument("--document", type=Path, metavar="FILE", help="write the tables to it, as a page")

    def results(self, options: argparse.Namespace) -> Raced:
        """Measure missing runs; print the tables."""
        store = Store(options.data / "minutes", None if options.any_code else code())
        cells = {
            (scenario, way, tool): [
                Cell(link, tool, SECONDS + ENDING_S, turn) for turn in range(1, TURNS[options.effort] + 1)
            ]
            for scenario, link in SCENARIOS.items()
            for way, down in WAYS.items()
            for tool in tools(down)
        }
        every = [cell for some in cells.values() for cell in some]
        missing = [cell for cell in every if not store.has(cell)]
        jobs = [(kind, way) for kind in KINDS for way in WAYS]
        if options.simulated and not options.measure_nothing:
            if absent := [program for program in PROGRAMS if not shutil.which(program)]:
                raise UsageError(
                    f"the race needs {', '.join(absent)}: install the packages of the distribution"
                )
            kernel = built_kernel(partial(print, file=sys.stderr))
            with harness.measuring(len(missing), len(every)):
                for failed in measure_all(kernel, missing, store, options.at_once):
                    sys.stderr.write(f"{failed}\n")
            _time(kernel, [job for job in jobs if not self._known(options, *job)], options)
        moved: dict[tuple[str, str], dict[str, Sequence[Result]]] = {}
        for (scenario, way, tool), some in cells.items():
            runs = next(iter(gather(store, some).values()), [])
            if len(runs) == len(some):
                moved.setdefault((scenario, way), {})[tool.removesuffix(DOWN)] = runs
        took_s = {job: known for job in jobs if (known := self._known(options, *job))}
        codes = {
            (tool, str(run.about["versions"]["code"]))
            for by in moved.values()
            for tool in by
            for run in by[tool]
        }
        codes |= {(OURS, str(json.loads(_file(options, *job).read_text())["code"])) for job in took_s}
        raced = Raced(moved, took_s, described(sorted(codes)))
        lines = self.table(raced)
        print("\n".join(lines))
        if options.document:
            options.document.write_text(page(lines))
        absent = [name for name in cells if name[2].removesuffix(DOWN) not in moved.get(name[:2], {})]
        if absent or len(took_s) < len(jobs):
            how = "" if options.simulated else "; --simulated measures what is missing, in hours"
            raise UsageError(
                f"no verdicts: {len(absent)} of {len(cells)} minutes and {len(jobs) - len(took_s)} of "
                f"{len(jobs)} copies are missing, the first {absent[:1]}{how}"
            )
        return raced

    @staticmethod
    def _known(options: argparse.Namespace, kind: str, way: str) -> dict[str, float | None] | None:
        """Return what is stored of a kind of copy, if this version measured it."""
        file = _file(options, kind, way)
        if not file.exists():
            return None
        stored = json.loads(file.read_text())
        known: dict[str, float | None] = stored["took_s"]
        return known if options.any_code or stored["code"] == code() else None

    def table(self, results: Raced) -> Sequence[str]:
        """Goodput of each tool, and of those beside it; then how long copies take."""
        names = [FAIR, FAST, *OTHERS[DOWN]]
        shown = " | ".join(SHOWN[name] for name in names)
        lines = [
            "What a minute moves, from the start of the program, Mbit/s; in brackets what is beside it.",
            "",
            f"| link | way | {shown} |",
            f"|---|---|{'---|' * len(names)}",
        ]
        for (scenario, way), by_tool in results.moved.items():
            row = [_cell(scenario, by_tool[name]) if name in by_tool else "" for name in names]
            lines.append(f"| {scenario} | {way} | {' | '.join(row)} |")
        names = [OURS, OURS_FAST, *OTHERS[DOWN]]
        shown = " | ".join(SHOWN.get(name, name) for name in names)
        lines += [
            "",
            "How long whole programs take, seconds.",
            "",
            f"| copy | way | {shown} |",
            f"|---|---|{'---|' * len(names)}",
        ]
        for (kind, way), took_s in results.took_s.items():
            row = [_took(took_s, name) for name in names]
            lines.append(f"| {kind} | {way} | {' | '.join(row)} |")
        return [*lines, "", results.codes]

    def measured(self, results: Raced) -> Mapping[str, Any]:
        """Return all runs, as JSON holds them."""
        return {
            "moved": [
                {
                    "link": scenario,
                    "way": way,
                    "beside": bool(SCENARIOS[scenario].beside),
                    "bps": {tool: [program_bps(run) for run in runs] for tool, runs in by_tool.items()},
                    "theirs_bps": {tool: [_theirs(run) for run in runs] for tool, runs in by_tool.items()},
                }
                for (scenario, way), by_tool in results.moved.items()
            ],
            "took": [
                {"copy": kind, "way": way, "seconds": took_s}
                for (kind, way), took_s in results.took_s.items()
            ],
        }

    def draw(self, results: Raced, axes: Any) -> None:
        """Goodput of all tools, by link and direction."""
        for name in (FAIR, FAST, *OTHERS[DOWN]):
            at = [i for i, by_tool in enumerate(results.moved.values()) if name in by_tool]
            goodput = [
                statistics.median(map(program_bps, by_tool[name])) / 1e6
                for by_tool in results.moved.values()
                if name in by_tool
            ]
            axes.plot(
                at, goodput, marker="o" if name in (FAIR, FAST) else ".", linewidth=0.6, label=SHOWN[name]
            )
        names = [f"{scenario}, {way}" for scenario, way in results.moved]
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize="x-small")
        axes.set_ylabel("Mbit/s in the first minute")
        axes.legend(fontsize="x-small")


def program_bps(run: Result) -> float:
    """Return the goodput of the first minute of a program, whose first byte comes later."""
    (transfer,) = run.transfers
    assert transfer.started_s is not None
    moves_s = SECONDS - (transfer.began_s - transfer.started_s)
    return transfer.goodput.mean_bps(0.0, moves_s) * moves_s / SECONDS


def _theirs(run: Result) -> float:
    return theirs_bps(run, 0.0)


def _cell(scenario: str, runs: Sequence[Result]) -> str:
    ours = Spread([program_bps(run) / 1e6 for run in runs])
    text = f"{ours.median:.0f}" if len(runs) == 1 else f"{ours:.0f}"
    if not SCENARIOS[scenario].beside:
        return text
    return f"{text} [{statistics.median(map(_theirs, runs)) / 1e6:.0f}]"


def _took(took_s: Mapping[str, float | None], name: str) -> str:
    if name not in took_s:
        return ""
    seconds = took_s[name]
    return "fails" if seconds is None else f"{seconds:.2f}"


def _file(options: argparse.Namespace, kind: str, way: str) -> Path:
    folder: Path = options.data / "copies"
    return folder / f"{kind.replace(' ', '-').replace(',', '')}-{way}.json"


def _time(kernel: Path, jobs: Sequence[tuple[str, str]], options: argparse.Namespace) -> None:
    """Time copies that end, each kind on a machine of its own."""
    programs = SimulatedPrograms(kernel)

    def one(job: tuple[str, str]) -> None:
        kind, way = job
        file = _file(options, kind, way)
        file.parent.mkdir(parents=True, exist_ok=True)
        sys.stderr.write(f"{kind}, {way}\n")
        unfinished = file.with_suffix(".running").absolute()
        programs.run([str(COPIES), str(unfinished), kind, way], 1 + jobs.index(job) % options.at_once)
        file.write_text(json.dumps({"code": code(), "took_s": json.loads(unfinished.read_text())}))
        unfinished.unlink()

    with under_way(jobs, one, options.at_once, programs.stop.set) as running:
        for done, (kind, way) in running.items():
            try:
                done.result()
            except MpxError as error:
                sys.stderr.write(f"{kind}, {way}: {error}\n")


PAGE = """# The race over a wide-area network

Written by `bench/race_wan.py --simulated --document docs/race.md`: whole programs from their start, in
simulated time (real kernel TCP), on 200 Mbit/s and 60 ms with a queue of one product of bandwidth and delay,
against a stock Globus server; copies over several paths against `mpx serve`, with a controller. The tools
as people run them: `mpx copy` (for a minute with `--checksum none`, as the copy does not end), the same with
`--policy fast`, `globus-url-copy` (guc; for many files `-r -cc 4 -pp -fast`), `aria2c -x16 -s16 -k1M`,
`curl`, `rclone --multi-thread-streams 16` and `lftp pget -n 16`. Median (least to most) where there are
several seeds. UDP bursts are 120 Mbit/s for one second of each five. The paths: four of 50 Mbit/s, or of 80,
60, 40 and 20; one that dies loses everything, and nobody is told. Where mpx is not first, and why:
[decision 48](decisions/0048-what-the-race-showed.md).
"""


def page(lines: Sequence[str]) -> str:
    """Return the page docs/race.md."""
    return "\n".join([PAGE, *lines, ""])


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say who is first."""
    for each in stored["moved"]:
        where = f"{each['link']}, {each['way']}"
        bps = {tool: statistics.median(runs) for tool, runs in each["bps"].items()}
        theirs = {tool: statistics.median(runs) for tool, runs in each["theirs_bps"].items()}
        others = {tool: value for tool, value in bps.items() if tool not in (FAIR, FAST)}
        best = max(others.values())
        least = (NEARLY if each["link"] == CLEAN else 1 / TIE) * best
        goal = f"{NEARLY} of the best" if each["link"] == CLEAN else "first"
        yield Verdict(
            f"{where}: fast is {goal}", f"{bps[FAST] / 1e6:.0f}, {best / 1e6:.0f}", bps[FAST] >= least
        )
        if each["beside"]:
            fair_enough = KEPT * theirs[ORDINARY]
            yield Verdict(
                f"{where}: the default leaves {KEPT} of what {SHOWN[ORDINARY]} does",
                f"{theirs[FAIR] / 1e6:.0f}, {theirs[ORDINARY] / 1e6:.0f}",
                theirs[FAIR] >= fair_enough,
            )
            others = {tool: value for tool, value in others.items() if theirs[tool] >= fair_enough}
        best = max(others.values())
        yield Verdict(
            f"{where}: the default is first of those that leave as much",
            f"{bps[FAIR] / 1e6:.0f}, {best / 1e6:.0f}",
            TIE * bps[FAIR] >= best,
        )
    for each in stored["took"]:
        took = {tool: value for tool, value in each["seconds"].items() if value is not None}
        best_s = min((value for tool, value in took.items() if tool not in (OURS, OURS_FAST)), default=None)
        goal = "first" if best_s is not None else f"{FILLED:.0%} of what the paths carry"
        limit_s = TIE * best_s if best_s is not None else KINDS[each["copy"]].least_s / FILLED
        for tool in (OURS, OURS_FAST):
            seconds = took.get(tool, math.inf)
            where = f"{each['copy']}, {each['way']}, {tool}"
            yield Verdict(f"{where}: {goal}", f"{seconds:.2f}, {limit_s:.2f} s", seconds <= limit_s)


if __name__ == "__main__":
    harness.run_row(RaceWan(), judge)
