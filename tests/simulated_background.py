"""Round-trip times beside simulated background traffic, to learn and to test on where no lab is.

A fluid model in steps of 4 ms of a bottleneck with a drop-tail queue, many runs side by side: CUBIC windows
(a cubic function of the time since the last loss), BBR version 1 (gains of 1.25 and 0.75 in eight phases, at
most two products of bandwidth and delay under way, a drain of 200 ms every 10 s), and short flows. It has the
signatures of the kernel's algorithms, not their figures. Time within the queue is in seconds, rates are
shares of the link.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpx.rtt.series import Probe

STEP_S = 0.004
EVERY_S = 0.1  # between two probes
MIXED = {"none": "", "C": "C", "B": "B", "CC": "CC", "BC": "BC", "BB": "BB"}
STREAMS = {**MIXED, "many": "C" * 12, **{f"ours {mix}": f"C{streams}" for mix, streams in MIXED.items()}}
Floats = NDArray[np.float64]
GAINS = np.array([1.25, 0.75, 1, 1, 1, 1, 1, 1])
CUBIC_C, CUBIC_BETA = 0.4, 0.7


@dataclass(frozen=True)
class Wan:
    """A bottleneck; queue in products of bandwidth and delay."""

    rate_bps: float
    rtt_s: float
    queue_bdp: float


def draw_wan(dice: np.random.Generator) -> Wan:
    """Return a random link, log-uniform."""
    rate, rtt, queue = (float(np.exp(dice.uniform(*np.log(limits)))) for limits in LIMITS)
    return Wan(rate * 1e6, rtt, queue)


LIMITS = ((20.0, 200.0), (0.01, 0.2), (0.25, 4.0))


def simulate(
    runs: Sequence[tuple[Wan, str, float]], seconds: float, seed: int, warm_up_s: float = 12.0
) -> list[list[Probe]]:
    """Return ten probes a second of each run (link, mix, load of short flows), from the warm-up's end on."""
    dice = np.random.default_rng(seed)
    base = np.array([wan.rtt_s for wan, _, _ in runs])
    room = np.array([wan.rtt_s * wan.queue_bdp for wan, _, _ in runs])
    packet = np.array([1514 * 8 / wan.rate_bps for wan, _, _ in runs])[:, None]
    most = max(2, *(len(STREAMS[mix]) for _, mix, _ in runs))
    kinds = np.array([[STREAMS[mix][i : i + 1] for i in range(most)] for _, mix, _ in runs])
    load = np.array([load for _, _, load in runs])
    model = _Streams(kinds, base, packet, dice)
    queue, short = np.zeros(len(runs)), np.zeros(len(runs))
    every = round(EVERY_S / STEP_S)
    seen: list[tuple[float, Floats, Floats]] = []
    for step in range(round((warm_up_s + seconds) / STEP_S)):
        now_s = step * STEP_S
        rates = model.rates(now_s, queue)
        short += (dice.random(len(runs)) < load * STEP_S / 0.04) * dice.exponential(0.04, len(runs))
        others = np.minimum(short / STEP_S, 0.3)
        short -= others * STEP_S
        total = rates.sum(axis=1) + others
        level = queue + (total - 1) * STEP_S
        lost = np.maximum(level - room, 0)
        queue = np.clip(level, 0, room)
        model.learn(now_s, queue, rates, total, lost)
        if step % every == 0 and now_s >= warm_up_s - 1e-9:
            share = np.where(total > 0, lost / np.maximum(total * STEP_S, 1e-12), 0)
            gone = dice.random(len(runs)) < share
            rtt = base + queue + dice.exponential(0.00005, len(runs))
            seen.append((now_s - warm_up_s, rtt, gone))
    return [
        [Probe(at_s, None if gone[i] else float(rtt[i])) for at_s, rtt, gone in seen]
        for i in range(len(runs))
    ]


class _Streams:
    """The streams of each run; arrays have a row for each run and a column for each stream."""

    def __init__(self, kinds: NDArray[np.str_], base: Floats, packet: Floats, dice: np.random.Generator):
        self.base, self.packet, self.dice = base[:, None], packet, dice
        self.is_cubic, self.is_bbr = kinds == "C", kinds == "B"
        shape = kinds.shape
        self.begins = dice.uniform(0, 3, shape)
        # CUBIC: windows in packets
        self.window = np.full(shape, 10.0)
        self.largest = np.full(shape, np.inf)  # infinite: still in slow start
        self.since = np.zeros(shape)
        self.deaf_until = np.zeros(shape)
        # BBR: bandwidth as a share of the link, the largest of ten round trips
        self.rounds = np.full((*shape, 10), 0.02)
        self.best = np.full(shape, 0.02)
        self.round_ends = self.begins.copy()
        self.phase = dice.integers(0, 8, shape)
        self.phase_ends = self.begins.copy()
        self.least = np.broadcast_to(self.base, shape).copy() * 1.5
        self.least_at = self.begins.copy()
        self.drains_until = np.full(shape, -1.0)
        self.starting = np.ones(shape, bool)

    def rates(self, now_s: float, queue: Floats) -> Floats:
        """Return the rate of each stream."""
        rtt = self.base + queue[:, None]
        cubic = self.window * self.packet / rtt
        bandwidth = self.rounds.max(axis=2)
        draining = now_s < self.drains_until
        gain = np.where(self.starting, 2.89, GAINS[self.phase])
        cap = np.where(draining, 4 * self.packet, 2 * bandwidth * self.least)
        bbr = np.minimum(gain * bandwidth, cap / rtt)
        rates = np.where(self.is_cubic, cubic, np.where(self.is_bbr, bbr, 0.0))
        return np.asarray(np.where(now_s >= self.begins, rates, 0.0))

    def learn(self, now_s: float, queue: Floats, rates: Floats, total: Floats, lost: Floats) -> None:
        """Let every stream see what became of its packets."""
        rtt = self.base + queue[:, None]
        scale = np.where(queue > 0, 1 / np.maximum(total, 1e-9), 1.0)
        delivered = rates * np.minimum(scale, 1)[:, None]
        share = rates / np.maximum(total, 1e-9)[:, None]
        hit = self.dice.random(rates.shape) < 1 - np.exp(-(lost[:, None] / self.packet) * share)
        self._cubic(now_s, rtt, hit)
        self._bbr(now_s, rtt, delivered)

    def _cubic(self, now_s: float, rtt: Floats, hit: NDArray[np.bool_]) -> None:
        hit = hit & (now_s >= self.deaf_until)
        self.largest = np.where(hit, self.window, self.largest)
        self.window = np.where(hit, np.maximum(self.window * CUBIC_BETA, 2), self.window)
        self.since = np.where(hit, now_s + rtt, self.since)
        self.deaf_until = np.where(hit, now_s + rtt, self.deaf_until)
        starting = np.isinf(self.largest)
        to_top = np.cbrt(np.where(starting, 1.0, self.largest) * (1 - CUBIC_BETA) / CUBIC_C)
        target = CUBIC_C * (now_s - self.since - to_top) ** 3 + np.where(starting, 0.0, self.largest)
        grown = np.where(
            starting, np.minimum(self.window * (1 + STEP_S / rtt), 1e6), np.maximum(self.window, target)
        )
        self.window = np.where((now_s >= self.deaf_until) & (now_s >= self.begins), grown, self.window)

    def _bbr(self, now_s: float, rtt: Floats, delivered: Floats) -> None:
        running = now_s >= self.begins
        self.rounds[..., 0] = np.maximum(self.rounds[..., 0], np.where(running, delivered, 0))
        turned = running & (now_s >= self.round_ends)
        best = self.rounds.max(axis=2)
        self.starting &= ~(turned & (best < 1.05 * self.best) & (now_s > self.begins + 5 * self.base))
        self.best = np.where(turned, best, self.best)
        self.rounds[turned, 1:] = self.rounds[turned, :-1]
        self.rounds[turned, 0] = delivered[turned]
        self.round_ends = np.where(turned, now_s + rtt, self.round_ends)
        stepped = running & (now_s >= self.phase_ends)
        self.phase = np.where(stepped, (self.phase + 1) % 8, self.phase)
        self.phase_ends = np.where(stepped, now_s + self.least, self.phase_ends)
        draining = now_s < self.drains_until
        begins = running & ~draining & (now_s > self.least_at + 10)
        self.drains_until = np.where(begins, now_s + 0.2 + rtt, self.drains_until)
        lower = running & ((rtt <= self.least) | begins)
        self.least = np.where(lower, rtt, self.least)
        self.least_at = np.where(lower, now_s, self.least_at)
        self.least = np.where(draining, np.minimum(self.least, rtt), self.least)
