"""The tuner on simulated CUBIC streams that share one queue: the real cost of changing their number.

    python bench/tuner_streams.py [--runs N] [--timeline LINK]

The race (tuner_race.py) gives every number of streams a goodput and lets those that stay take over within
three round-trip times. Real streams do not: what congestion control took back in one round trip it gives
back over seconds, most slowly where the queue is short and the path is long. Here each stream has a
congestion window, grows by slow start or RFC 9438, and loses 30 % of it when the queue drops one of its
packets. One step is one round trip. The links are those of the lab's experiments (bench/apt_*.py).

Four transfers that join one after another follow, on queues of a quarter to two products of bandwidth and
delay, beside four plain flows that do the same.

Best: the best of the fixed numbers. Reached: one second at 90 % of it. Steady: after the first minute. Exits
1 if on a link the median is not reached within max(3 s, 40 RTT), or has less than 90 % of the best in the
first minute or 97 % steady, or if our transfers share less evenly than plain flows.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import harness
from figures import Spread, Verdict
from harness import command
from mpx_lab.series import jain

from mpx.engine.tuner import Decision, Sample
from mpx.tuning.adaptive import AutoTuner

SEGMENT_BYTES, FRAME_BYTES = 1448, 1514
STEP_S = 0.1  # one call of the tuner
RUN_S, FIRST_S, WORST_S = 92, 60, 10
FIXED = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)
FIXED_S = 30
BETA, C = 0.7, 0.4  # of RFC 9438
FRIENDLY = 3 * (1 - BETA) / (1 + BETA)  # segments per round trip at least
EARLY, STEADY = 0.9, 0.97  # of the best fixed number, at least
HURRY = 0.7  # a window arrives within that share of the round trip


@dataclass(frozen=True)
class Bottleneck:
    """A bottleneck with a drop-tail queue; `window_bytes` is the receivers', None for as much as it takes."""

    rate_bps: float
    rtt_s: float
    queue_packets: int
    window_bytes: int | None = 65535
    loss: float = 0.0  # of packets, at random

    @property
    def name(self) -> str:
        """What the table calls it."""
        windows = "tuned" if self.window_bytes is None else f"{(self.window_bytes + 1) >> 10} KB"
        path = f"{self.rate_bps / 1e6:g} Mbit/s, {self.rtt_s * 1e3:g} ms"
        loss = f", loss {self.loss:.1%}" if self.loss else ""
        return f"{path}, {self.queue_packets} packets, {windows}{loss}"


LINKS = (
    Bottleneck(20e6, 0.05, 500),
    Bottleneck(200e6, 0.01, 100),
    Bottleneck(200e6, 0.05, 50),
    Bottleneck(200e6, 0.05, 500),
    Bottleneck(200e6, 0.08, 100),
    Bottleneck(200e6, 0.1, 100),
    Bottleneck(200e6, 0.06, 1000, None),
    Bottleneck(200e6, 0.06, 1000, None, 0.001),
    Bottleneck(100e6, 0.06, 500, None, 0.001),
)


SHARED = tuple(Bottleneck(100e6, 0.05, packets, None) for packets in (100, 250, 400, 800))
JOINING, EVERY_S = 4, 45


@dataclass(slots=True)
class CubicStream:
    """One TCP connection; windows in segments."""

    carries_from_s: float
    window: float = 10.0
    slow_start: bool = True
    top: float = 0.0  # window before the last loss
    floor: float = 0.0  # and after it
    grows_from_s: float | None = None

    def lose(self, most: float) -> None:
        """A packet of this round trip was dropped."""
        window = min(self.window, most)
        self.top = window if window >= self.top else window * (1 + BETA) / 2
        self.window = max(2.0, window * BETA)
        self.slow_start, self.grows_from_s = False, None

    def grow(self, now_s: float, round_s: float) -> None:
        """All packets of this round trip arrived."""
        if self.slow_start:
            self.window *= 2
            return
        if self.grows_from_s is None:
            self.grows_from_s, self.floor = now_s, self.window
        top, age_s = max(self.top, self.floor), now_s - self.grows_from_s + round_s
        cubic = C * (age_s - ((top - self.floor) / C) ** (1 / 3)) ** 3 + top
        friendly = self.floor + FRIENDLY * age_s / round_s
        self.window = min(max(self.window, cubic, friendly), 1.5 * self.window)


class CubicTransfer:
    """The streams of one transfer; `set_count` opens and retires them."""

    def __init__(self, path: "Path"):
        self._path = path
        self.streams: list[CubicStream] = []
        self.round_bytes = self.done_bytes = 0.0
        self.resent = 0
        self.least_rtt_s = math.inf  # that it has met: one that joins a full path never sees it empty
        self.held_back = 0.0

    def set_count(self, count: int) -> None:
        """Open streams, which carry two round trips later, or retire the youngest."""
        ready_s = self._path.from_s + 2 * self._path.link.rtt_s
        self.streams += [CubicStream(ready_s) for _ in range(count - len(self.streams))]
        del self.streams[count:]

    def carrying(self) -> list[CubicStream]:
        """The streams that take part in the round under way."""
        return [stream for stream in self.streams if stream.carries_from_s <= self._path.from_s]

    def arrived_bytes(self, at_s: float) -> int:
        """What has arrived by then: each round's share comes early in the round."""
        return int(self.done_bytes + self._path.share(at_s) * self.round_bytes)

    def sample(self, at_s: float) -> Sample:
        """What a carrier would tell the tuner; the file has no end."""
        met, window_bytes = not math.isinf(self.least_rtt_s), self._path.link.window_bytes
        return Sample(
            streams=len(self.carrying()),
            arrived_bytes=self.arrived_bytes(at_s),
            bytes_left=10**15,
            rtt_s=self._path.round_trip_s,
            retransmits=self.resent,
            limited_by_receiver=self.held_back,
            limited_by_sender=0.0,
            queue_s=self._path.round_trip_s - self.least_rtt_s if met else None,
            window_bps=window_bytes * 8 / self.least_rtt_s if met and window_bytes else None,
        )


class Path:
    """Transfers that share a link; `advance` to a time, change their streams in between."""

    def __init__(self, link: Bottleneck, seed: str):
        self.link, self._random = link, Random(seed)
        self._most = link.window_bytes / SEGMENT_BYTES if link.window_bytes else float("inf")
        self.transfers: list[CubicTransfer] = []
        self.from_s = self._round_s = 0.0  # of the round under way
        self.round_trip_s = link.rtt_s  # smoothed as the kernel does

    def join(self) -> CubicTransfer:
        """One more transfer, without streams at first."""
        self.transfers.append(CubicTransfer(self))
        return self.transfers[-1]

    def share(self, at_s: float) -> float:
        """How much of the round's data has arrived."""
        return min(1.0, (at_s - self.from_s) / (HURRY * self._round_s)) if self._round_s else 0.0

    def advance(self, to_s: float) -> None:
        """Let the time pass."""
        while self.from_s + self._round_s <= to_s:
            for transfer in self.transfers:
                transfer.done_bytes += transfer.round_bytes
            self.from_s += self._round_s
            self._one_round()

    def _one_round(self) -> None:
        link = self.link
        carrying = [(each, stream) for each in self.transfers for stream in each.carrying()]
        windows = [min(stream.window, self._most) for _, stream in carrying]
        in_flight = link.rate_bps * link.rtt_s / 8 / FRAME_BYTES
        excess = max(0.0, sum(windows) - in_flight)
        self._round_s = link.rtt_s * (1 + min(excess, link.queue_packets) / in_flight)
        self.round_trip_s += 0.5 * (self._round_s - self.round_trip_s)
        dropped = max(0.0, excess - link.queue_packets)
        whole = int(dropped) + (self._random.random() < dropped % 1)
        hit = set(self._random.choices(range(len(carrying)), windows, k=whole)) if whole else set()
        most_bytes = link.rate_bps * self._round_s / 8 * SEGMENT_BYTES / FRAME_BYTES
        bytes_of_one = min(SEGMENT_BYTES, most_bytes / max(1.0, sum(windows)))
        for transfer in self.transfers:
            if transfer.streams:
                transfer.least_rtt_s = min(transfer.least_rtt_s, self._round_s)
            held = [stream.window >= self._most for each, stream in carrying if each is transfer]
            transfer.held_back = sum(held) / len(held) if held else 0.0
            transfer.round_bytes = 0.0
        for i, (transfer, stream) in enumerate(carrying):
            transfer.round_bytes += windows[i] * bytes_of_one
            if i in hit or self._random.random() > (1 - link.loss) ** windows[i]:
                transfer.resent += 1
                stream.lose(self._most)
            elif stream.window < self._most:
                stream.grow(self.from_s, self._round_s)


@dataclass
class CubicRun:
    """Bytes of each step, streams asked for, and the decisions with their times."""

    moved: list[int]
    asked: list[int]
    decisions: list[tuple[float, Decision]]
    arrived: int = 0

    def bps(self, from_s: float, to_s: float) -> float:
        """Mean goodput."""
        part = self.moved[round(from_s / STEP_S) : round(to_s / STEP_S)]
        return sum(part) * 8 / (len(part) * STEP_S)

    def reached_s(self, bps: float) -> float:
        """The end of the first second that carried so much, as the bench on the lab has it."""
        second = round(1 / STEP_S)
        starts = range(len(self.moved) - second)
        enough = (i * STEP_S + 1 for i in starts if sum(self.moved[i : i + second]) * 8 >= bps)
        return next(enough, float("inf"))

    def worst_bps(self) -> float:
        """The least goodput of ten seconds after the first minute."""
        return min(self.bps(start, start + WORST_S) for start in range(FIRST_S, RUN_S - WORST_S + 1))

    def opened(self) -> int:
        """How many streams were opened."""
        pairs = zip([0, *self.asked], self.asked, strict=False)
        return sum(max(0, after - before) for before, after in pairs)


def run(link: Bottleneck, seed: str, fixed: int | None = None, seconds: float = RUN_S) -> CubicRun:
    """One transfer: a fixed number of streams, or our tuner."""
    return together(link, seed, 1, seconds, seconds, fixed)[0]


def together(
    link: Bottleneck, seed: str, count: int, every_s: float, seconds: float, fixed: int | None = None
) -> list[CubicRun]:
    """So many transfers, one more every `every_s`; times of a run count from its own beginning."""
    path = Path(link, seed)
    joined: list[tuple[float, CubicTransfer, AutoTuner, CubicRun]] = []
    for step in range(round(seconds / STEP_S)):
        now_s = step * STEP_S
        path.advance(now_s)
        if len(joined) < count and now_s >= len(joined) * every_s - STEP_S / 2:
            joined.append((now_s, path.join(), AutoTuner(), CubicRun([], [], [])))
            if fixed is not None:
                joined[-1][1].set_count(fixed)
        for began_s, transfer, tuner, found in joined:
            own_s = now_s - began_s
            if fixed is None:
                for decision in tuner.observe(own_s, {"path": transfer.sample(now_s)}):
                    found.decisions.append((own_s, decision))
                    transfer.set_count(decision.streams)
            found.moved.append(transfer.arrived_bytes(now_s) - found.arrived)
            found.arrived += found.moved[-1]
            found.asked.append(len(transfer.streams))
    return [found for *_, found in joined]


def best_fixed(link: Bottleneck) -> tuple[int, float]:
    """The fewest streams within 1 % of the best fixed number, and what the best carries (bit/s)."""
    found = {n: run(link, f"fixed {n}", n, FIXED_S).bps(FIXED_S / 2, FIXED_S) for n in FIXED}
    best = max(found.values())
    return min(n for n, bps in found.items() if bps >= 0.99 * best), best


def line(link: Bottleneck, number: int, best: float, found: Sequence[CubicRun]) -> str:
    """One row of the table: median, and the worst run where it is more telling."""
    reached = sorted(each.reached_s(0.9 * best) for each in found)
    first = sorted(each.bps(0, FIRST_S) / best for each in found)
    steady = sorted(each.bps(FIRST_S, RUN_S) / best for each in found)
    later = [statistics.median(each.asked[round(FIRST_S / STEP_S) :]) for each in found]
    cells = [
        f"{link.name:48s} {number:5d} {best / 1e6:6.1f}",
        f"{statistics.median(reached):5.1f} {reached[-1]:5.1f}",
        f"{statistics.median(first):6.1%} {first[0]:6.1%}",
        f"{statistics.median(steady):6.1%} {steady[0]:6.1%}",
        f"{min(each.worst_bps() for each in found) / best:6.1%}",
        f"{statistics.median(later):5.0f} {max(later):5.0f}",
        f"{statistics.mean(each.opened() for each in found):6.0f}",
    ]
    return " | ".join(cells)


def measured(link: Bottleneck, best: float, found: Sequence[CubicRun]) -> dict[str, Any]:
    """Return what is judged of our runs on one link, in shares of the best fixed number (bit/s)."""
    return {
        "rtt_s": link.rtt_s,
        "reached_s": [each.reached_s(0.9 * best) for each in found],
        "first minute": [each.bps(0, FIRST_S) / best for each in found],
        "steady": [each.bps(FIRST_S, RUN_S) / best for each in found],
    }


def judge(stored: Mapping[str, Any]) -> Iterator[Verdict]:
    """Hold our runs on each link against the best fixed number, and those that join against plain flows."""
    for name, found in stored["links"].items():
        reached_s, limit_s = Spread(found["reached_s"]), max(3.0, 40 * found["rtt_s"])
        limit = f"{name}: 90 % reached within {limit_s:g} s in the median"
        yield Verdict(limit, f"{reached_s:.1f} s", reached_s.median <= limit_s)
        for what, least in (("first minute", EARLY), ("steady", STEADY)):
            share = Spread(found[what])
            limit = f"{name}: {what} at least {least:.0%} of the best fixed number in the median"
            yield Verdict(limit, f"{share:.1%}", share.median >= least)
    for name, found in stored["joining"].items():
        for count, (ours, plain) in enumerate(zip(found["ours"], found["plain"], strict=True), 2):
            mine, other = Spread(ours), Spread(plain)
            limit = f"{name}, {count} transfers: shared at least as evenly as plain flows in the median"
            yield Verdict(limit, f"{mine:.3f} against {other:.3f}", mine.median >= other.median)


def fairness(link: Bottleneck, seed: str, fixed: int | None) -> list[float]:
    """Jain's index of 2, 3 and 4 transfers in the worst ten seconds from 30 s after a join."""
    runs = together(link, seed, JOINING, EVERY_S, JOINING * EVERY_S, fixed)
    worst = []
    for count in range(2, JOINING + 1):
        starts = range((count - 1) * EVERY_S + 30, count * EVERY_S - WORST_S + 1)
        shares = [
            [
                each.bps(start - i * EVERY_S, start + WORST_S - i * EVERY_S)
                for i, each in enumerate(runs[:count])
            ]
            for start in starts
        ]
        worst.append(min(map(jain, shares)))
    return worst


def joining(link: Bottleneck, runs: int) -> dict[str, list[tuple[float, ...]]]:
    """Let transfers join one after another: ours, and plain flows of one stream.

    Returns for each Jain's indices of the runs, with 2, 3 and 4 transfers.
    """
    return {
        name: list(zip(*(fairness(link, f"joining {i}", fixed) for i in range(runs)), strict=True))
        for name, fixed in (("ours", None), ("plain", 1))
    }


def joining_line(link: Bottleneck, name: str, found: Sequence[Sequence[float]]) -> str:
    """One row of the table."""
    cells = [
        f"{count}: {statistics.median(each):.3f} ({min(each):.3f})" for count, each in enumerate(found, 2)
    ]
    return f"{link.name:40s} | {name:5s} | " + " | ".join(cells)


def measure(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Simulate all links and print the table, or the decisions of one run and nothing else."""
    if args.timeline is not None:
        for at_s, decision in run(LINKS[args.timeline - 1], "run 0").decisions:
            print(f"{at_s:6.1f} {decision.streams:4d}  {decision.reason}")
        sys.exit()
    print(f"{args.runs} transfers of {RUN_S} s on each link; worst of them in the second column of a pair\n")
    print(
        f"{'link':48s} {'fixed':>5s} {'Mbit/s':>6s} | {'reached, s':>11s} | {'first minute':>13s} | "
        f"{'steady':>13s} | {'10 s':>6s} | {'streams':>11s} | opened"
    )
    said: dict[str, dict[str, Any]] = {"links": {}, "joining": {}}
    for link in LINKS:
        number, best = best_fixed(link)
        found = [run(link, f"run {i}") for i in range(args.runs)]
        print(line(link, number, best, found), flush=True)
        said["links"][link.name] = measured(link, best, found)
    print(f"\n{JOINING} transfers, one more every {EVERY_S} s; Jain in the worst 10 s: median (least)")
    for link in SHARED:
        shared = joining(link, args.runs)
        for name, indices in shared.items():
            print(joining_line(link, name, indices), flush=True)
        said["joining"][link.name] = shared
    print()
    return said


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--runs", type=int, default=12, help="transfers per link")
    parser.add_argument("--timeline", type=int, metavar="LINK", help="decisions on one link, from 1")
    harness.run(parser, measure, judge)
