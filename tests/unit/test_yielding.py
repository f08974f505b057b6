"""The rate of a copy that yields, on a made-up link with a queue that others fill or leave."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpx.rtt_series import Probe
from mpx.yielding import LEAST_SEGMENTS, SEGMENT_BYTES, Yielding

STEP_S = 0.01


@dataclass
class Link:
    """A fluid through one queue; of `others` (bit/s at a time) nothing yields."""

    rate_bps: float
    rtt_s: float
    queue_s: float  # the longest
    others: Callable[[float], float] = lambda _: 0.0
    floor: Callable[[float], float] = lambda _: 0.0  # a queue that others keep, seconds
    now_s: float = 0.0
    waiting_s: float = 0.0
    arrived_bytes: float = 0.0
    probes: list[Probe] = field(default_factory=list)
    seen: list[tuple[float, float, float]] = field(default_factory=list)  # time, our share, queue

    def run(self, yielding: Yielding, until_s: float) -> None:
        rate_bps = yielding.observe(0.0, [], 0)
        sent: list[tuple[float, float]] = []  # what reaches the queue half a round trip later
        step = 0
        while self.now_s < until_s:
            sent.append((self.now_s + self.rtt_s / 2, rate_bps))
            ours_bps = next((bps for at_s, bps in reversed(sent) if at_s <= self.now_s), 0.0)
            others_bps = self.others(self.now_s)
            all_bps = ours_bps + others_bps
            self.waiting_s += (all_bps / self.rate_bps - 1) * STEP_S
            self.waiting_s = min(max(self.waiting_s, self.floor(self.now_s)), self.queue_s)
            share_bps = ours_bps if all_bps <= self.rate_bps else ours_bps * self.rate_bps / all_bps
            self.arrived_bytes += share_bps * STEP_S / 8
            self.seen.append((self.now_s, share_bps / self.rate_bps, self.waiting_s))
            if step % 10 == 0:
                self.probes.append(Probe(self.now_s, self.rtt_s + self.waiting_s))
            if step % 10 == 5:
                known = [one for one in self.probes if one.rtt_s and one.t_s + one.rtt_s <= self.now_s]
                rate_bps = yielding.observe(self.now_s, known[-50:], int(self.arrived_bytes))
            self.now_s += STEP_S
            step += 1

    def shares(self, from_s: float, until_s: float) -> list[float]:
        return [share for at_s, share, _ in self.seen if from_s <= at_s < until_s]

    def queues(self, from_s: float) -> list[float]:
        return [queue_s for at_s, _, queue_s in self.seen if at_s >= from_s]


@pytest.mark.parametrize("rtt_s", [0.002, 0.02, 0.06, 0.2])
@pytest.mark.parametrize("rate_bps", [20e6, 200e6, 10e9])
def test_alone_it_takes_the_link_and_leaves_hardly_any_queue(rate_bps: float, rtt_s: float) -> None:
    link, yielding = Link(rate_bps, rtt_s, queue_s=1.0), Yielding()
    link.run(yielding, 35.0)
    shares = link.shares(20.0, 35.0)
    assert sum(shares) / len(shares) > 0.95
    assert max(link.queues(20.0)) < 10 * yielding.target_s


@pytest.mark.parametrize("rtt_s", [0.02, 0.06, 0.2])
def test_it_leaves_the_link_to_a_standing_queue_and_is_back_within_ten_seconds(rtt_s: float) -> None:
    busy = (10.0, 40.0)
    link = Link(100e6, rtt_s, 1.0, floor=lambda t_s: 2 * rtt_s if busy[0] < t_s < busy[1] else 0.0)
    link.run(Yielding(), 60.0)
    shares = link.shares(20.0, 40.0)
    assert sum(shares) / len(shares) < 0.05
    assert max(link.shares(40.0, 50.0)) > 0.8
    back = link.shares(50.0, 60.0)
    assert sum(back) / len(back) > 0.8


def test_of_what_others_leave_free_it_takes_most() -> None:
    link = Link(100e6, 0.05, 1.0, others=lambda _: 60e6)
    link.run(Yielding(), 30.0)
    shares = link.shares(15.0, 30.0)
    assert 0.2 < sum(shares) / len(shares) <= 0.41


def test_a_slow_source_stores_up_no_rate() -> None:
    yielding = Yielding()
    rate_bps = 0.0
    for tick in range(300):
        now_s = tick / 10
        rate_bps = yielding.observe(now_s, [Probe(now_s - 0.05, 0.05)], int(now_s * 1e6 / 8))
    assert rate_bps < 3e6


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(0.001, 5)), max_size=60))
def test_there_is_always_a_rate(rtts: list[float | None]) -> None:
    yielding = Yielding()
    for number, rtt_s in enumerate(rtts):
        rate_bps = yielding.observe(number / 10, [Probe(number / 10, rtt_s)], number * 1000)
        assert 0 < rate_bps < 1e12
    assert yielding.observe(1000.0, [], 10**9) >= 8 * LEAST_SEGMENTS * SEGMENT_BYTES / 7


class Path:
    """A path of 20 ms that lets through so much, and a copy that has come up on it."""

    def __init__(self, until_s: int = 10) -> None:
        self.yielding, self.rate_bps = Yielding(), 0.0
        self._arrived_bytes, self._now_s = 0.0, 0.0
        self.goes_on(until_s, 0.02)
        self.before_bps = self.rate_bps

    def goes_on(self, until_s: int, rtt_s: float | None, lets_bps: float = 100e6) -> None:
        """Go on beside probes that take so long, or are lost."""
        while self._now_s < until_s:
            self._now_s += 0.1
            self._arrived_bytes += min(self.rate_bps, lets_bps) / 80
            probes = [Probe(self._now_s - 0.05, rtt_s)]
            self.rate_bps = self.yielding.observe(self._now_s, probes, int(self._arrived_bytes))


def test_probes_that_are_all_lost_are_a_full_path() -> None:
    path = Path()
    path.goes_on(15, None)
    assert path.rate_bps < 0.05 * path.before_bps


def test_without_probes_the_rate_stays() -> None:
    path = Path()
    assert path.yielding.observe(60.0, [], 10**9) == path.before_bps


def test_a_path_that_has_become_longer_is_known_after_some_minutes() -> None:
    path = Path()
    path.goes_on(60, 0.04)
    assert path.rate_bps < 0.05 * path.before_bps and path.yielding.gives_way
    path.goes_on(800, 0.04)
    assert path.rate_bps > 0.5 * path.before_bps and not path.yielding.gives_way


def test_while_nothing_is_sent_the_rate_does_not_grow() -> None:
    path = Path()
    path.goes_on(40, 0.02, lets_bps=0.0)
    assert path.rate_bps <= path.before_bps
