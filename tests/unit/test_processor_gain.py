"""Whether one processor is enough for a copy: made-up machines, tick by tick."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.transfer.processor_gain import AGAIN_S, BUSY, LATEST_S, SETTLES_S, SPAN_S, ProcessorGain

TICK_S = 0.1
SOON_S = 2 * SETTLES_S + 3 * SPAN_S + 5 * TICK_S
Machine = Callable[
    [float, bool], tuple[float, float]
]  # by time and whether it is one: Gbit/s, processors busy


class Copied:
    """A copy on a machine; `ones`: when it was on one processor, a value for each tick."""

    def __init__(self, machine: Machine, streams: Callable[[float], int] = lambda _: 4) -> None:
        self.gain, self.ones, self._streams = ProcessorGain(), list[bool](), streams
        self._machine, self._bytes, self._cpu_s = machine, 0.0, 0.0

    def run(self, seconds: float) -> "Copied":
        for _ in range(round(seconds / TICK_S)):
            now_s = len(self.ones) * TICK_S
            gbps, busy = self._machine(now_s, self.gain.is_enough)
            self._bytes += gbps * 1e9 / 8 * TICK_S
            self._cpu_s += busy * TICK_S
            self.ones.append(self.gain.observe(now_s, self._streams(now_s), round(self._bytes), self._cpu_s))
        return self

    @property
    def share(self) -> float:
        return sum(self.ones) / len(self.ones)


def test_where_several_bring_nothing_one_is_used() -> None:
    copied = Copied(lambda _, is_one: (10.0, 1.0) if is_one else (10.0, 1.5)).run(SOON_S)
    assert copied.ones[-1]
    assert copied.run(600).share > 0.9  # from time to time several are tried again


def test_where_several_bring_more_they_stay_and_trials_are_ever_rarer() -> None:
    copied = Copied(lambda _, is_one: (10.0, 1.0) if is_one else (12.0, 1.5)).run(4000)
    begins = [
        i * TICK_S
        for i, (before, now) in enumerate(zip(copied.ones, copied.ones[1:], strict=False))
        if now > before
    ]
    pauses_s = [round(later - sooner) for sooner, later in itertools.pairwise(begins)]
    assert pauses_s[0] >= AGAIN_S
    assert pauses_s == sorted(pauses_s)
    assert pauses_s[-1] >= LATEST_S
    assert copied.share < 0.02


def test_a_copy_that_keeps_no_processor_busy_is_left_alone() -> None:
    assert not any(Copied(lambda *_: (1.0, 0.9 * BUSY)).run(200).ones)


def test_a_copy_that_grows_is_not_taken_for_one_that_needs_one() -> None:
    """A second later any number of processors carries more than a second before."""

    def machine(now_s: float, is_one: bool) -> tuple[float, float]:
        several = min(10.0, 1.0 + now_s)
        return (min(several, 6.0), 1.0) if is_one else (several, 1.5)

    assert Copied(machine).run(40).share < 0.15


def test_while_the_number_of_streams_changes_nothing_is_tried() -> None:
    def machine(_: float, is_one: bool) -> tuple[float, float]:
        return 10.0, 1.0 if is_one else 1.5

    assert not any(Copied(machine, streams=int).run(60).ones)
    assert Copied(machine, streams=lambda now_s: 4 if now_s < 30 else 5).run(60).ones[-1]


def test_when_others_use_the_processor_all_are_used() -> None:
    def machine(now_s: float, is_one: bool) -> tuple[float, float]:
        return (4.0 if now_s >= 13 else 10.0, 0.5) if is_one else (10.0, 1.5)

    copied = Copied(machine).run(13 + 2 * SPAN_S + 3 * TICK_S)
    assert copied.ones[round(12 / TICK_S)]
    assert not copied.ones[-1]


def test_when_several_come_to_bring_more_they_are_used() -> None:
    def machine(now_s: float, is_one: bool) -> tuple[float, float]:
        return (10.0, 1.0) if is_one else (10.0 if now_s < 20 else 20.0, 1.5)

    copied = Copied(machine).run(60)
    assert copied.ones[round(19 / TICK_S)]
    assert sum(copied.ones[-round(20 / TICK_S) :]) < 0.3 * 20 / TICK_S


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 0.4)), max_size=300))
def test_whatever_is_measured_each_state_lasts(ticks: list[tuple[int, float]]) -> None:
    gain, arrived, cpu_s, changes_s = ProcessorGain(), 0, 0.0, [0.0]
    for number, (more, busy_s) in enumerate(ticks):
        arrived, cpu_s, before = arrived + more, cpu_s + busy_s, gain.is_enough
        if gain.observe(number * TICK_S, 4, arrived, cpu_s) != before:
            changes_s.append(number * TICK_S)
    assert all(later - sooner >= SPAN_S - TICK_S / 2 for sooner, later in itertools.pairwise(changes_s))


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_at_the_start_all_are_used(seconds: float) -> None:
    assert not any(Copied(lambda *_: (10.0, 2.0)).run(seconds).ones)
