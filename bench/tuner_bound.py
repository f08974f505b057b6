"""A bound for the tuner race: how soon an experimenter is right who knows everything but the curve.

    python bench/tuner_bound.py [--seed N] [--runs N]

He knows the noise, its correlation, the ramp, and all kinds of curves in their true proportions (thousands of
draws from the race's own generators). He need not move bytes: until the time is up he does nothing but switch
between a few counts, laid out around the true optimum, which no tuner knows. Each switch costs what it costs
in the race: 10 RTT upwards, 3 RTT downwards, one step in which it takes effect, one that is measured. Then
he names the count that is most probably good, by the exact posterior. The layout that serves a family
best is the one that counts. A tuner has to find the place of its experiments first, and to carry
bytes meanwhile, so it must know less.

Exits 1 where not even this experimenter is right in nine of ten transfers after max(5 s, 60 RTT): there the
goal of the race (bench/tuner_race.py) cannot be met at all.
"""

import argparse
import math
from collections.abc import Iterator, Mapping
from random import Random

import numpy as np
from figures import Verdict
from harness import command, run
from numpy.typing import NDArray
from tuner_models import (
    FAMILIES,
    MAX_STREAMS,
    NOISE_CORRELATION_S,
    RAMP_RTT,
    STEP_S,
    TAKEOVER_RTT,
    Curve,
    draw,
)

LAYOUTS = ((0.25, 1.0), (0.5, 2.0), (0.125, 0.5, 2.0), (0.25, 1.0, 4.0), (0.0625, 0.25, 1.0, 4.0))
KNOWN_CURVES = 6000  # draws that make up what the experimenter knows
PER_OCTAVE = 4
GOAL = 0.9
COUNTS = sorted({round(2 ** (i / PER_OCTAVE)) for i in range(PER_OCTAVE * 8 + 1)})
Matrix = NDArray[np.float64]


def switching(layout: list[int], rtt_s: float, until_s: float) -> tuple[list[int], list[float]]:
    """The counts one after the other, up and down the layout, and the seconds between their measurements."""
    round_trip = [*layout, *layout[-2:0:-1]]
    counts, gaps, now_s = [layout[0]], [math.inf], RAMP_RTT * rtt_s + 2 * STEP_S
    while True:
        there = round_trip[len(counts) % len(round_trip)]
        gap_s = 2 * STEP_S + (RAMP_RTT if there > counts[-1] else TAKEOVER_RTT) * rtt_s
        now_s += gap_s
        if now_s > until_s and len(counts) > 1:
            return counts, gaps
        counts.append(there)
        gaps.append(gap_s)


def likely_good(
    truth: Curve,
    known: Matrix,
    is_good: Matrix,
    sequence: tuple[list[int], list[float]],
    cv: float,
    dice: Random,
) -> bool:
    """Simulate one experiment and say whether the count chosen after it is good."""
    counts, gaps = sequence
    sigma = math.sqrt(math.log(1 + cv * cv)) / math.sqrt(2 / math.e)
    keep = np.exp(-np.array(gaps) / NOISE_CORRELATION_S)
    spread = sigma * np.sqrt(1 - keep**2)
    noise = 0.0
    seen = np.empty(len(counts))
    for i, n in enumerate(counts):
        noise = keep[i] * noise + dice.gauss(0, spread[i])
        seen[i] = math.log(truth.goodput_bps(n)) + noise
    shares = known[:, np.array(counts) - 1]

    def white(values: Matrix) -> Matrix:
        before = np.concatenate([np.zeros_like(values[..., :1]), values[..., :-1]], axis=-1)
        return np.asarray((values - keep * before) / spread)

    level, off = white(np.ones(len(counts))), white(seen) - white(shares)
    off = off - np.outer(off @ level / (level @ level), level)  # the capacity is unknown
    log_odds = -0.5 * np.sum(off**2, axis=1)
    odds = np.exp(log_odds - log_odds.max())
    choice = COUNTS[int(np.argmax(odds @ is_good))]
    return truth.good(choice)


def first_curve(family: str, dice: Random) -> tuple[Curve, float]:
    """A curve of a family (of shifting ones the first) and its RTT."""
    network = draw(FAMILIES[family], dice)
    return network.curve, network.rtt_s


def measure(args: argparse.Namespace) -> dict[str, float]:
    """Print, for each family and noise, how often the experimenter is right when the goals' time is up."""
    names = list(FAMILIES)
    dice = Random(f"known {args.seed}")
    curves = [first_curve(names[i % len(names)], dice)[0] for i in range(KNOWN_CURVES)]
    every = range(1, MAX_STREAMS + 1)
    known = np.log(np.array([[max(c.share(n), 1e-12) for n in every] for c in curves]))
    is_good = np.array([[float(c.good(n)) for n in COUNTS] for c in curves])
    print(f"seed {args.seed}, {args.runs} curves per family, {KNOWN_CURVES} known ones")
    print("share that is right after max(3 s, 40 RTT), and after max(5 s, 60 RTT)\n")
    print(f"{'family':15s}" + "".join(f" | noise {cv:4.0%}: 3 s   5 s" for cv in (0.1, 0.25)))
    totals = np.zeros((2, 2))
    for name in names:
        cells = ""
        for column, cv in enumerate((0.1, 0.25)):
            right = np.zeros((len(LAYOUTS), 2))
            for i, layout in enumerate(LAYOUTS):
                dice = Random(f"{args.seed} {name} {cv}")
                for _ in range(args.runs):
                    curve, rtt_s = first_curve(name, dice)
                    places = sorted({max(1, min(MAX_STREAMS, round(curve.fewest * x))) for x in layout})
                    if len(places) < 2:
                        places = [places[0], 2 * places[0]]
                    for j, until_s in enumerate((max(3.0, 40 * rtt_s), max(5.0, 60 * rtt_s))):
                        sequence = switching(places, rtt_s, until_s)
                        right[i, j] += likely_good(curve, known, is_good, sequence, cv, dice)
            best = right.max(axis=0) / args.runs
            totals[column] += best / len(names)
            cells += f" |            {best[0]:5.0%} {best[1]:5.0%}"
        print(f"{name:15s}{cells}", flush=True)
    print(f"{'ALL':15s}" + "".join(f" |            {t[0]:5.0%} {t[1]:5.0%}" for t in totals))
    return {f"{cv:.0%}": float(total[1]) for cv, total in zip((0.1, 0.25), totals, strict=True)}


def judge(right: Mapping[str, float]) -> Iterator[Verdict]:
    """Say of each noise whether the goal of the race can be met: the share that is right in time."""
    for noise, share in right.items():
        limit = f"noise {noise}: right in {GOAL:.0%} after max(5 s, 60 RTT), over all families"
        yield Verdict(limit, f"{share:.1%}", share >= GOAL)


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--runs", type=int, default=100, help="curves per family")
    parser.add_argument("--seed", type=int, default=1)
    run(parser, measure, judge)
