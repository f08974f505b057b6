"""A simulated race of the tuners of parallel streams: how soon, how well, how often not at all.

    python bench/tuner_race.py [--quick] [--heldout] [--noise PERCENT] [--tuner NAME] [--seed N] [--runs N]
                               [--keep FILE] [--figure FILE]

Good: the noiseless steady goodput of the streams asked for is at least 90 % of the curve's best, with at
most twice the fewest streams that give 90 %. Reached: the first moment that is good and from which at
least 75 % of the next max(5 s, 60 RTT) are good too, so that brief trials of other numbers are allowed.
Failed: not reached within 60 s (before a shift: by the shift; after it: within 40 s). Two other readings of
"reached" stand at the end: good for the first time at all; good from then on for 75 % of all that follows.

Exits 1 if over all families our tuner ("auto") misses a goal at any noise: the median reached within max(3 s,
40 RTT), nine of ten within max(5 s, 60 RTT), at most 1 % failed; or if another tuner has fewer that fail.
"""

import argparse
import json
import math
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from figures import Verdict
from harness import command, run
from tuner_models import FAMILIES, MAX_STREAMS, STEP_S, Curve, Network, SimulatedTransfer, draw
from tuner_rivals import AzCopy, Falcon, GaussianProcess

from mpx.apt_gss import PaperGss
from mpx.engine.tuner import Tuner
from mpx.tuning.adaptive import AutoTuner

RUN_S = 72.0  # 60 s to reach, and the longest window (60 RTT of 200 ms) to hold
NOISES = (0.0, 0.1, 0.25)
OURS, MAY_FAIL = "auto", 0.01
ROOT = Path(__file__).resolve().parent.parent
TUNER, HELD_OUT_FILE = "mpx/tuning", "bench/tuner_heldout.py"
Family = Callable[[Random], Curve | tuple[Curve, Curve]]
TUNERS: dict[str, Callable[[], Tuner]] = {
    "auto": lambda: AutoTuner(4, MAX_STREAMS),
    "paper": lambda: PaperGss(max_streams=MAX_STREAMS),
    "falcon": lambda: Falcon(max_streams=MAX_STREAMS),
    "azcopy": lambda: AzCopy(max_streams=MAX_STREAMS),
    "gp": lambda: GaussianProcess(max_streams=MAX_STREAMS),
}


@dataclass(frozen=True)
class RaceRun:
    """What one transfer came to; times in seconds, None where it failed."""

    rtt_s: float
    reached_s: float | None
    found_again_s: float | None  # after a shift
    touched_s: float | None  # good for the first time
    stayed_s: float | None  # from then on good for 75 % of all that follows (until a shift)
    held: float  # share of the time after reaching (until a shift) that was good
    decisions: int
    opened: int
    utilisation: float  # bytes moved over bytes at the curve's best


def simulate(
    network: Network, tuner: Tuner, cv: float, hints: bool, seed: str
) -> tuple[list[int], SimulatedTransfer, int, int]:
    """Let a tuner steer one transfer for `RUN_S`; returns streams asked for per step, decisions, opened."""
    transfer = SimulatedTransfer(network, cv, Random(seed), hints)
    asked: list[int] = []
    decisions = opened = 0
    chunk: float | None = None  # bytes of the chunk under way that have not arrived
    while transfer.now_s < RUN_S - STEP_S / 2:
        still = chunk is not None and chunk <= 0
        for decision in tuner.observe(transfer.now_s, {"path": transfer.sample(still)}):
            decisions += 1
            opened += decision.streams if decision.barrier else max(0, decision.streams - transfer.streams)
            transfer.set_streams(decision.streams, reopen=decision.barrier)
            chunk = float(decision.chunk_bytes or 0) if decision.barrier else None
        asked.append(transfer.streams)
        moved = transfer.step(math.inf if chunk is None else chunk)
        chunk = None if chunk is None else chunk - moved
        if chunk is not None and chunk < 1:
            chunk = 0.0
    return asked, transfer, decisions, opened


def reach(good: list[bool], rtt_s: float, start_s: float, end_s: float) -> float | None:
    """Seconds after `start_s` until good, by the definition above."""
    window = round(max(5.0, 60 * rtt_s) / STEP_S)
    for i in range(round(start_s / STEP_S), min(round(end_s / STEP_S), len(good))):
        ahead = good[i : i + window]
        if good[i] and sum(ahead) >= 0.75 * len(ahead):
            return i * STEP_S - start_s
    return None


def touch(good: list[bool]) -> float | None:
    """Seconds until good for the first time."""
    return good.index(True) * STEP_S if True in good else None


def stay(good: list[bool]) -> float | None:
    """Seconds until good, with 75 % of all that follows good too."""
    found, after = None, 0
    for i in range(len(good) - 1, -1, -1):
        after += good[i]
        if good[i] and after >= 0.75 * (len(good) - i):
            found = i * STEP_S
    return found


def race(
    family: Family, name: str, tuner: str, cv: float, hints: bool, seed: int, runs: int
) -> list[RaceRun]:
    """`runs` transfers on networks of one family; every tuner meets the same ones."""
    results = []
    for number in range(runs):
        network = draw(family, Random(f"{seed} {name} {number}"))
        asked, transfer, decisions, opened = simulate(
            network, TUNERS[tuner](), cv, hints, f"{seed} {name} {number} {cv}"
        )
        curves = [network.at((i + 0.5) * STEP_S) for i in range(len(asked))]
        good = [curve.good(streams) for curve, streams in zip(curves, asked, strict=True)]
        shifts = network.later is not None
        first_end_s = network.shift_s if shifts else 60.0
        reached_s = reach(good, network.rtt_s, 0.0, first_end_s)
        again_s = reach(good, network.rtt_s, network.shift_s, network.shift_s + 40) if shifts else None
        first = good[: round(first_end_s / STEP_S)]
        after = first[round((reached_s or 0.0) / STEP_S) :]
        best_bytes = sum(curve.best_bps for curve in curves) * STEP_S / 8
        held = mean(after) if reached_s is not None and after else 0.0
        utilisation = transfer.arrived_bytes / best_bytes
        results.append(
            RaceRun(
                rtt_s=network.rtt_s,
                reached_s=reached_s,
                found_again_s=again_s,
                touched_s=touch(first),
                stayed_s=stay(first),
                held=held,
                decisions=decisions,
                opened=opened,
                utilisation=utilisation,
            )
        )
    return results


def quantile(values: list[float], share: float) -> float:
    """The value that `share` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def seconds(value: float) -> str:
    """Seconds or a normalised time; a dash where it was never reached."""
    return "     -" if math.isinf(value) else f"{value:6.2f}"


HEADER = " ".join(
    f"{title:>{width}s}"
    for title, width in (
        *(("family         ", 15), ("tuner   ", 8), ("noise", 5), ("hints", 5), ("| med s", 8), ("P90 s", 6)),
        *(("med/lim", 7), ("P90/lim", 7), ("fail", 5), ("held", 5), ("| again s", 9), ("P90 s", 6)),
        *(("P90/lim", 7), ("fail", 5), ("| decis.", 8), ("opened", 6), ("/min", 5), ("util", 5)),
    )
)


def line(name: str, tuner: str, cv: float, hints: bool, runs: list[RaceRun]) -> str:
    """One row of the table; '/lim' divides each run by max(3 s, 40 RTT), at P90 by max(5 s, 60 RTT)."""
    reached = [math.inf if r.reached_s is None else r.reached_s for r in runs]
    median_of = [t / max(3.0, 40 * r.rtt_s) for t, r in zip(reached, runs, strict=True)]
    p90_of = [t / max(5.0, 60 * r.rtt_s) for t, r in zip(reached, runs, strict=True)]
    cells = [
        f"{name:15s} {tuner:8s} {cv:5.0%} {'yes' if hints else 'no':>5s} |",
        f"{seconds(quantile(reached, 0.5))} {seconds(quantile(reached, 0.9))}",
        f"{seconds(quantile(median_of, 0.5)):>7s} {seconds(quantile(p90_of, 0.9)):>7s}",
        f"{mean(r.reached_s is None for r in runs):5.0%} {mean(r.held for r in runs):5.0%} |",
    ]
    if name.startswith("shifting"):
        again = [math.inf if r.found_again_s is None else r.found_again_s for r in runs]
        again_of = [t / max(5.0, 60 * r.rtt_s) for t, r in zip(again, runs, strict=True)]
        cells += [
            f"{seconds(quantile(again, 0.5)):>7s} {seconds(quantile(again, 0.9))}",
            f"{seconds(quantile(again_of, 0.9)):>7s} {mean(math.isinf(t) for t in again):5.0%} |",
        ]
    else:
        cells.append(" " * 28 + "|")
    opened = mean(r.opened for r in runs)
    cells.append(f"{mean(r.decisions for r in runs):6.1f} {opened:6.0f} {60 * opened / RUN_S:5.0f}")
    cells.append(f"{mean(r.utilisation for r in runs):5.2f}")
    return " ".join(cells)


def judge(stored: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> Iterator[Verdict]:
    """Hold our tuner against its goals and the others, over all families; runs by noise and tuner."""
    for noise, by_tuner in stored.items():
        ran = {tuner: [RaceRun(**run) for run in runs] for tuner, runs in by_tuner.items()}
        failing = {tuner: mean(r.reached_s is None for r in runs) for tuner, runs in ran.items()}
        runs, where = ran.get(OURS, []), f"noise {noise}"
        if not runs:
            continue
        for share, least_s, round_trips in ((0.5, 3.0, 40), (0.9, 5.0, 60)):
            times = [
                math.inf if r.reached_s is None else r.reached_s / max(least_s, round_trips * r.rtt_s)
                for r in runs
            ]
            found = quantile(times, share)
            limit = f"{where}: {share:.0%} reached within max({least_s:g} s, {round_trips} RTT)"
            yield Verdict(limit, f"{found:.2f} times that", found <= 1)
        failed = failing.pop(OURS)
        yield Verdict(f"{where}: at most {MAY_FAIL:.0%} not reached", f"{failed:.1%}", failed <= MAY_FAIL)
        if failing:
            best = min(failing, key=failing.__getitem__)
            limit = f"{where}: no other tuner has fewer that fail"
            yield Verdict(limit, f"{failed:.1%}, {best} {failing[best]:.1%}", failed <= failing[best])


def readings(tuner: str, cv: float, runs: list[RaceRun]) -> str:
    """Shares of runs that are in time (P90's limit), and that fail, by three readings of "reached"."""
    cells = []
    for name in ("reached_s", "touched_s", "stayed_s"):
        times = [getattr(run, name) for run in runs]
        pairs = zip(times, runs, strict=True)
        in_time = mean(t is not None and t <= max(5.0, 60 * run.rtt_s) for t, run in pairs)
        cells.append(f"{in_time:7.1%} {mean(t is None for t in times):7.1%}")
    return f"{tuner:8s} {cv:5.0%} | " + " | ".join(cells)


def last_commit(path: str) -> str:
    """The commit that last changed a file or folder, or that it is not committed."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%h %cI", "--", path]
    return (
        subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "not committed"
    )


def entries(
    heldout: bool, tuners: list[str], noises: tuple[float, ...]
) -> Iterator[tuple[str, Family, str, float, bool]]:
    """Every row of the table: family, its generator, tuner, noise, hints.

    Only the window-limited family has something to tell; elsewhere hints change nothing.
    """
    families: dict[str, Family] = dict(FAMILIES)
    if heldout:
        from tuner_heldout import HELD_OUT

        families = dict(HELD_OUT)
    for name, family in families.items():
        for tuner in tuners:
            for cv in noises:
                for hints in (True, False) if (tuner, name) == ("auto", "window-limited") else (False,):
                    yield name, family, tuner, cv, hints


class Kept:
    """Rows of earlier calls in a file, so that a race can be run in parts; without a file nothing is kept."""

    def __init__(self, file: str | None):
        self._file = Path(file) if file else None
        lines = self._file.read_text().splitlines() if self._file and self._file.exists() else []
        self._rows: dict[str, list[RaceRun]] = {}
        for key, runs in map(json.loads, lines):
            self._rows[key] = [RaceRun(**run) for run in runs]

    def get(self, key: str, race: Callable[[], list[RaceRun]]) -> list[RaceRun]:
        """The row of that name: the kept one, or else a new one, which is kept."""
        if key not in self._rows:
            self._rows[key] = race()
            if self._file:
                with self._file.open("a") as out:
                    out.write(json.dumps([key, [asdict(run) for run in self._rows[key]]]) + "\n")
        return self._rows[key]


def figure(file: str, rows: list[tuple[str, str, float, bool, list[RaceRun]]]) -> None:
    """Share of runs that have reached the good range over time, per noise, all families together."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    noises = sorted({cv for _, _, cv, _, _ in rows})
    fig, axes = plt.subplots(1, len(noises), figsize=(4 * len(noises), 3.4), sharey=True, squeeze=False)
    for axis, cv in zip(axes[0], noises, strict=True):
        for tuner in TUNERS:
            times = sorted(
                math.inf if r.reached_s is None else r.reached_s
                for _, t, c, hints, runs in rows
                if (t, c, hints) == (tuner, cv, False)
                for r in runs
            )
            shares = [(i + 1) / len(times) for i in range(len(times))]
            axis.step([max(t, 0.05) for t in times], shares, label=tuner)
        axis.set(xscale="log", xlim=(0.05, 60), ylim=(0, 1), xlabel="seconds", title=f"noise {cv:.0%}")
    axes[0][0].set_ylabel("share of runs that reached")
    axes[0][-1].legend(fontsize=7, loc="lower right")
    fig.tight_layout()
    fig.savefig(file, dpi=150)


def measure(args: argparse.Namespace) -> dict[str, dict[str, list[RaceRun]]]:
    """Race the tuners and print the table."""
    runs = args.runs or (5 if args.quick else 25)
    tuners = [args.tuner] if args.tuner else list(TUNERS)
    noises = (args.noise / 100,) if args.noise is not None else (0.0, 0.25) if args.quick else NOISES
    kept = Kept(args.keep)
    for path in (TUNER, HELD_OUT_FILE):
        print(f"{path:25s} last changed in {last_commit(path)}")
    print("\nGood:" + (__doc__ or "").split("Good:")[1])
    print(f"seed {args.seed}, {runs} transfers per row, {RUN_S:.0f} s each")
    print("lim: max(3 s, 40 RTT) for the median, max(5 s, 60 RTT) for P90 and after a shift\n")
    print(HEADER)
    rows = []
    for name, family, tuner, cv, hints in entries(args.heldout, tuners, noises):
        key = f"{name} {tuner} {cv} {hints} {args.seed} {runs}"
        results = kept.get(key, partial(race, family, name, tuner, cv, hints, args.seed, runs))
        rows.append((name, tuner, cv, hints, results))
        print(line(name, tuner, cv, hints, results), flush=True)
    print()
    everything = {
        (tuner, cv): [r for row in rows if (row[1], row[2], row[3]) == (tuner, cv, False) for r in row[4]]
        for cv in sorted({row[2] for row in rows})
        for tuner in tuners
    }
    for (tuner, cv), results in everything.items():
        print(line("ALL", tuner, cv, False, results))
    print("\nin time, failed: reached, as above | good for the first time | good and then 75 % of the rest")
    for (tuner, cv), results in everything.items():
        print(readings(tuner, cv, results))
    if args.figure:
        figure(args.figure, rows)
    print()
    measured: dict[str, dict[str, list[RaceRun]]] = {}
    for (tuner, cv), results in everything.items():
        measured.setdefault(f"{cv:.0%}", {})[tuner] = results
    return measured


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs, noise 0 and 25 %% only")
    parser.add_argument("--heldout", action="store_true", help="only the family written after the tuner")
    parser.add_argument("--runs", type=int, help="transfers per row (default 25; quick 5)")
    parser.add_argument("--noise", type=int, choices=[round(100 * cv) for cv in NOISES], help="only that")
    parser.add_argument("--tuner", choices=TUNERS, help="only that")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", metavar="FILE", help="keep rows there, and take those that are there")
    parser.add_argument("--figure", metavar="FILE", help="draw how many have reached over time")
    run(parser, measure, judge)
