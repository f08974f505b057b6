"""The rate of a copy that yields, on a made-up link with a queue that others fill or leave."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.recognition.scavenger_rate import ARRIVED_S, LEAST_SEGMENTS, SEGMENT_BYTES, Phase, Yielding
from mpx.rtt.method import LOST_AFTER_S
from mpx.rtt.series import Probe

STEP_S = 0.005
PACKET_BITS = 12_000


@dataclass
class Cubic:
    """A stream with RFC 9438's window, in packets: slow start until there is a queue, then cubes."""

    from_s: float
    until_s: float
    window: float = 10.0
    peak: float = 0.0
    since_s: float | None = None  # the last loss, or the end of slow start
    climb_s: float = 0.0  # until the peak is reached again: K
    blind_s: float = 0.0  # what is lost until then belongs to the loss before

    def go_on(self, now_s: float, rtt_s: float, waiting_s: float, *, lost: bool) -> None:
        """A step of time, with the queueing delay at its end."""
        if lost and now_s > self.blind_s:
            self.peak = self.window if self.window >= self.peak else 0.85 * self.window
            self.window *= 0.7
            self.climb_s = math.cbrt((self.peak - self.window) / 0.4)
            self.since_s, self.blind_s = now_s, now_s + rtt_s + waiting_s
        elif self.since_s is None:
            self.window *= 1 + STEP_S / (rtt_s + waiting_s)
            if waiting_s > min(0.016, max(0.004, rtt_s / 8)):  # HyStart
                self.peak, self.since_s = self.window, now_s
        else:
            aim = self.peak + 0.4 * (now_s - self.since_s - self.climb_s) ** 3
            self.window += max(0.0, aim - self.window) * min(1.0, STEP_S / (rtt_s + waiting_s))


@dataclass
class Link:
    """A fluid through one queue; of `others` (bit/s at a time) nothing yields."""

    rate_bps: float
    rtt_s: float
    queue_s: float  # the longest
    others: Callable[[float], float] = lambda _: 0.0
    floor: Callable[[float], float] = lambda _: 0.0  # a queue that others keep, seconds
    stream: Cubic | None = None
    loses: Callable[[int], bool] = lambda _: False  # the probe of that number, which is known seconds later
    now_s: float = 0.0
    waiting_s: float = 0.0
    arrived_bytes: float = 0.0
    probes: list[tuple[float, Probe]] = field(default_factory=list)  # and when it is back
    seen: list[tuple[float, float, float, float]] = field(
        default_factory=list
    )  # time, shares of us and it, queue

    def run(self, yielding: Yielding | None, until_s: float) -> None:
        rate_bps = yielding.observe(0.0, [], 0) if yielding else 0.0
        late: list[float] = [0.0] * max(1, int(self.rtt_s / 2 / STEP_S))  # what is on its way to the far end
        for step in range(int((until_s - self.now_s) / STEP_S)):
            late.append(self._pass(rate_bps))
            self.arrived_bytes += late.pop(0)
            if step % 20 == 0:
                rtt_s = None if self.loses(len(self.probes)) else self.rtt_s + self.waiting_s
                known_s = LOST_AFTER_S if rtt_s is None else rtt_s
                self.probes.append((self.now_s + known_s, Probe(self.now_s, rtt_s)))
            if step % 20 == 10 and yielding:
                known = [probe for back_s, probe in self.probes[-50:] if back_s <= self.now_s]
                rate_bps = yielding.observe(self.now_s, known, int(self.arrived_bytes))
            self.now_s += STEP_S

    def _pass(self, ours_bps: float) -> float:
        """Return how many of our bytes the link takes in a step."""
        stream = (
            self.stream if self.stream and self.stream.from_s <= self.now_s < self.stream.until_s else None
        )
        its_bps = stream.window * PACKET_BITS / (self.rtt_s + self.waiting_s) if stream else 0.0
        all_bps = ours_bps + its_bps + self.others(self.now_s)
        waiting_s = self.waiting_s + (all_bps / self.rate_bps - 1) * STEP_S
        is_full = all_bps > self.rate_bps or self.waiting_s > 0
        self.waiting_s = min(max(waiting_s, self.floor(self.now_s), 0.0), self.queue_s)
        of_link = 1 / all_bps if is_full else 1 / self.rate_bps
        if stream:
            stream.go_on(self.now_s, self.rtt_s, self.waiting_s, lost=waiting_s > self.queue_s)
        self.seen.append((self.now_s, ours_bps * of_link, its_bps * of_link, self.waiting_s))
        return ours_bps * of_link * self.rate_bps * STEP_S / 8

    def share(self, from_s: float, until_s: float) -> float:
        """Return what we had of the link."""
        return _mean([ours for at_s, ours, _, _ in self.seen if from_s <= at_s < until_s])

    def its_share(self, from_s: float, until_s: float) -> float:
        """Return what the stream had."""
        return _mean([its for at_s, _, its, _ in self.seen if from_s <= at_s < until_s])

    def longest_s(self, from_s: float) -> float:
        """Return the longest queue."""
        return max(queue_s for at_s, _, _, queue_s in self.seen if at_s >= from_s)

    def back_s(self, end_s: float) -> float:
        """Return how long after that we had 80 % of the link for a second."""
        times = (end_s + tenth / 10 for tenth in range(int(self.now_s - end_s - 1) * 10))
        return next((at_s + 1 - end_s for at_s in times if self.share(at_s, at_s + 1) >= 0.8), math.inf)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.parametrize("rtt_s", [0.002, 0.02, 0.06, 0.2])
@pytest.mark.parametrize("rate_bps", [20e6, 200e6, 10e9])
def test_alone_it_takes_the_link_and_leaves_hardly_any_queue(rate_bps: float, rtt_s: float) -> None:
    link, yielding = Link(rate_bps, rtt_s, queue_s=1.0), Yielding()
    link.run(yielding, 45.0)
    assert link.share(30.0, 45.0) > 0.95
    assert link.longest_s(30.0) < 4 * yielding.target_s


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("rtt_s", "queue_bdp"), [(0.02, 1.0), (0.06, 0.25), (0.06, 4.0), (0.128, 0.75)])
def test_a_cubic_stream_has_what_it_has_alone_and_then_the_link_is_ours_within_ten_seconds(
    rtt_s: float, queue_bdp: float, *, first: bool
) -> None:
    comes_s = 0.0 if first else 30.0
    ends_s = comes_s + 60.0
    alone = Link(100e6, rtt_s, rtt_s * queue_bdp, stream=Cubic(comes_s, ends_s))
    alone.run(None, ends_s)
    beside = Link(100e6, rtt_s, rtt_s * queue_bdp, stream=Cubic(comes_s, ends_s))
    beside.run(Yielding(), ends_s + 20.0)
    has = beside.its_share(comes_s + 10.0, ends_s) / alone.its_share(comes_s + 10.0, ends_s)
    assert has >= 0.95
    assert beside.back_s(ends_s) <= 10.0


@pytest.mark.parametrize("rtt_s", [0.02, 0.06, 0.2])
def test_it_leaves_the_link_to_a_standing_queue_and_is_back_within_ten_seconds(rtt_s: float) -> None:
    def busy(now_s: float) -> bool:
        return 10.0 < now_s < 40.0

    link = Link(
        100e6,
        rtt_s,
        1.0,
        others=lambda now_s: 100e6 if busy(now_s) else 0.0,
        floor=lambda now_s: 2 * rtt_s if busy(now_s) else 0.0,
    )
    link.run(Yielding(), 60.0)
    assert link.share(20.0, 40.0) < 0.05
    assert link.back_s(40.0) <= 10.0
    assert link.share(50.0, 60.0) > 0.8


def test_of_what_others_leave_free_it_takes_most() -> None:
    link = Link(100e6, 0.05, 1.0, others=lambda _: 60e6)
    link.run(Yielding(), 40.0)
    assert 0.36 < link.share(20.0, 40.0) <= 0.41


def test_others_that_take_no_more_than_their_part_are_lived_with_in_time() -> None:
    link = Link(100e6, 0.05, 1.0, others=lambda now_s: 60e6 if now_s > 30 else 0.0)
    link.run(Yielding(), 300.0)
    assert 0.3 < link.share(200.0, 300.0) <= 0.41


def test_a_single_late_probe_costs_hardly_anything() -> None:
    link, yielding = Link(100e6, 0.05, 1.0), Yielding()
    link.run(yielding, 30.0)
    while yielding.phase is not Phase.HOLD:
        link.run(yielding, link.now_s + 0.1)
    before_bps = yielding.observe(link.now_s, [], int(link.arrived_bytes))
    yielding.observe(link.now_s, [Probe(link.now_s - 0.06, 0.5)], int(link.arrived_bytes))
    after_bps = yielding.observe(link.now_s, [Probe(link.now_s - 0.05, 0.05)], int(link.arrived_bytes))
    assert after_bps == before_bps
    assert not yielding.yields


def test_two_late_probes_are_others_also_with_a_good_one_between_them() -> None:
    link, yielding = Link(100e6, 0.05, 1.0), Yielding()
    link.run(yielding, 30.0)
    while yielding.phase is not Phase.HOLD:
        link.run(yielding, link.now_s + 0.1)

    def yields(after_s: float, rtt_s: float) -> bool:
        now_s = link.now_s + after_s
        yielding.observe(now_s, [Probe(now_s - 0.05, rtt_s)], int(link.arrived_bytes))
        return yielding.yields

    assert [yields(0.1, 0.25), yields(0.2, 0.05), yields(0.3, 0.25)] == [False, False, True]
    assert yielding.queue_s == pytest.approx(0.2)
    assert yields(0.4, 0.05) and yields(ARRIVED_S, 0.05)  # who has just come may be slow to begin
    assert not yields(ARRIVED_S + 0.4, 0.05)


def test_a_slow_source_stores_up_no_rate() -> None:
    yielding = Yielding()
    rate_bps = 0.0
    for tick in range(300):
        now_s = tick / 10
        rate_bps = yielding.observe(now_s, [Probe(now_s - 0.05, 0.05)], int(now_s * 1e6 / 8))
    assert rate_bps < 3e6


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


@pytest.mark.parametrize("queue_s", [0.003, 1.0])
@pytest.mark.parametrize("every", [2, 5])
def test_others_that_make_probes_be_lost_now_and_then_are_given_way(queue_s: float, every: int) -> None:
    """That a probe is lost is known seconds after those that came later were answered."""
    link = Link(100e6, 0.05, queue_s, loses=lambda number: 200 <= number < 400 and number % every == 0)
    link.run(Yielding(), 60.0)
    assert link.share(15.0, 20.0) > 0.8
    assert link.share(33.0, 43.0) < 0.05
    assert link.share(55.0, 60.0) > 0.8


@pytest.mark.parametrize("queue_s", [0.003, 1.0])
def test_a_probe_that_is_lost_now_and_then_costs_nothing(queue_s: float) -> None:
    link = Link(100e6, 0.05, queue_s, loses=lambda number: number % 15 == 0)
    link.run(Yielding(), 60.0)
    assert link.share(20.0, 60.0) > 0.9


def test_probes_that_are_lost_as_it_asks_for_more_may_be_its_own_doing() -> None:
    link = Link(100e6, 0.05, 0.003)
    link.loses = lambda number: number % 2 == 0 and link.waiting_s >= link.queue_s
    link.run(Yielding(), 120.0)
    assert link.share(20.0, 120.0) > 0.7


def test_without_probes_the_rate_stays() -> None:
    path = Path()
    assert path.yielding.observe(60.0, [], 10**9) == path.before_bps


def test_a_path_that_has_become_longer_is_known_after_some_minutes() -> None:
    path = Path()
    path.goes_on(60, 0.04)
    assert path.rate_bps < 0.05 * path.before_bps and path.yielding.yields
    path.goes_on(800, 0.04)
    assert path.rate_bps > 0.5 * path.before_bps and not path.yielding.yields


def test_while_nothing_is_sent_the_rate_does_not_grow() -> None:
    path = Path()
    path.goes_on(40, 0.02, lets_bps=0.0)
    assert path.rate_bps <= path.before_bps
