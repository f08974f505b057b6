"""When probes are sent and what becomes of them: schedules, and runs on a scripted way and its own clock."""

import heapq
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.errors import ConnectionLost, Interrupted
from mpx.rtt.method import Answer, Kind, Noise
from mpx.rtt.runner import Run
from mpx.rtt.schedule import single, trains

BEGAN_S = 1000.0


class Scripted:
    """Answers probe n after `rtt_of(n)` seconds, None for never, on a clock that moves only by waiting."""

    kind: Kind = "icmp"
    name = "scripted"
    lost_after_s = 3.0
    sees_loss = True
    retransmissions = None
    trouble = ""

    def __init__(self, rtt_of: Callable[[int], float | None]) -> None:
        self.now_s = BEGAN_S
        self.sent_s: dict[int, float] = {}
        self.stands_still: dict[float, float] = {}  # from when, for how long
        self._rtt_of = rtt_of
        self._under_way: list[tuple[float, int, float]] = []
        self.most_under_way = 0

    def clock(self) -> float:
        return self.now_s

    def ask(self, number: int) -> float:
        self.sent_s[number] = self.now_s
        rtt_s = self._rtt_of(number)
        if rtt_s is not None:
            heapq.heappush(self._under_way, (self.now_s + rtt_s, number, rtt_s))
        self.most_under_way = max(self.most_under_way, len(self._under_way))
        return self.now_s

    def answers(self, until_s: float) -> list[Answer]:
        next_s = self._under_way[0][0] if self._under_way else until_s
        self.now_s = max(self.now_s, min(next_s, until_s))
        for from_s in [from_s for from_s in self.stands_still if self.now_s >= BEGAN_S + from_s]:
            self.now_s += self.stands_still.pop(from_s)
        found = []
        while self._under_way and self._under_way[0][0] <= self.now_s:
            _, number, rtt_s = heapq.heappop(self._under_way)
            found.append(Answer(number, rtt_s))
        return found

    def noise(self) -> Noise:
        return Noise(0.0, "none")


def ran(way: Scripted, due: list[float], *, stop: Callable[[], bool] = lambda: False) -> Run:
    run = Run(way, clock=way.clock)
    run.go(due, stop)
    return run


def even(window_s: float) -> list[float]:
    return [number / 10 for number in range(round(10 * window_s))]


# --- schedules -------------------------------------------------------------------------------------


def test_ten_probes_a_second() -> None:
    assert all(0 <= at_s - step / 10 < 0.06 + 1e-9 for step, at_s in enumerate(single(60.0)))
    assert len(single(10.0)) == 100
    assert single(0.001) == [0]
    assert [len(single(n * 0.1)) for n in range(1, 100)] == list(range(1, 100))  # however they are rounded


@given(st.floats(0.1, 2.0))
def test_no_rhythm_of_the_path_hides_behind_that_of_the_probes(period_s: float) -> None:
    phases = sorted(at_s / period_s % 1 for at_s in single(10.0))
    gaps = [later - earlier for earlier, later in pairwise([*phases, phases[0] + 1])]
    assert max(gaps) < 0.45


def test_the_sampling_of_the_paper() -> None:
    due = trains(3.0)
    assert len(due) == 30
    assert due[10:20] == pytest.approx([1 + k / 1000 for k in range(10)])
    assert len(trains(2.1)) == 30


# --- runs ------------------------------------------------------------------------------------------


def test_none_waits_for_the_one_before() -> None:
    way = Scripted(lambda _: 0.3)
    run = ran(way, even(2.0))
    probes = run.probes()
    assert run.not_sent == 0
    assert [probe.t_s for probe in probes] == pytest.approx(even(2.0))
    assert {probe.rtt_s for probe in probes} == {0.3}
    assert way.most_under_way >= 3


def test_trains_leave_in_time_though_nothing_has_come_back() -> None:
    probes = ran(Scripted(lambda _: 0.128), trains(2.0)).probes()
    assert [probe.t_s for probe in probes] == pytest.approx(trains(2.0))


def test_it_ends_with_the_last_answer() -> None:
    run = ran(Scripted(lambda number: 1.5 if number == 3 else 0.01), even(0.5))
    assert run.duration_s == pytest.approx(0.3 + 1.5)


def test_what_is_lost_is_known_when_its_time_has_passed() -> None:
    run = ran(Scripted(lambda number: None if number == 4 else 0.01), even(0.5))
    assert [probe.rtt_s for probe in run.probes()] == [0.01, 0.01, 0.01, 0.01, None]
    assert run.duration_s == pytest.approx(0.4 + Scripted.lost_after_s)


def test_what_comes_too_late_was_lost() -> None:
    run = ran(Scripted(lambda number: 3.5 if number == 0 else 0.01), even(5.0))
    assert run.probes()[0].rtt_s is None
    assert all(probe.rtt_s == 0.01 for probe in run.probes()[1:])


def test_an_interruption_leaves_out_what_nobody_knows_yet() -> None:
    way = Scripted(lambda number: None if number in (0, 40) else 0.25)
    run = Run(way, clock=way.clock)
    with pytest.raises(Interrupted):
        run.go(even(10.0), lambda: way.now_s >= BEGAN_S + 4.5)
    probes = run.probes()
    assert probes[0].rtt_s is None  # 4.5 s ago
    assert all(probe.rtt_s == 0.25 for probe in probes[1:])
    assert 40 < len(way.sent_s) <= 46
    assert len(way.sent_s) - 4 <= len(probes) < len(way.sent_s)
    assert 4.0 not in [round(probe.t_s, 3) for probe in probes]


def test_it_does_not_even_begin_when_stopped_before() -> None:
    way = Scripted(lambda _: 0.01)
    run = Run(way, clock=way.clock)
    with pytest.raises(Interrupted):
        run.go(even(1.0), lambda: True)
    assert (run.probes(), way.sent_s) == ([], {})


def test_a_program_that_stood_still_does_not_send_all_at_once() -> None:
    way = Scripted(lambda _: 0.02)
    way.stands_still = {2.0: 5.0}
    run = ran(way, even(10.0))
    probes = run.probes()
    assert run.not_sent == 100 - len(probes)
    gaps = [second.t_s - first.t_s for first, second in pairwise(probes)]
    assert max(gaps) > 4.9
    assert len([gap for gap in gaps if gap < 0.09]) <= 3  # of those that were due in the last moment
    assert len(probes) == pytest.approx(50, abs=3)
    assert probes[-1].t_s == pytest.approx(9.9)


def test_a_way_that_is_lost_tells_what_was_known() -> None:
    way = Scripted(lambda _: 0.02)
    ask = way.ask

    def lose(number: int) -> float:
        if number == 7:
            raise ConnectionLost("gone")
        return ask(number)

    way.ask = lose  # type: ignore[method-assign]
    run = Run(way, clock=way.clock)
    with pytest.raises(ConnectionLost, match="gone"):
        run.go(even(10.0), lambda: False)
    assert [probe.rtt_s for probe in run.probes()] == [0.02] * 7


@given(st.lists(st.none() | st.floats(0, 5), min_size=1, max_size=60))
def test_every_answer_finds_its_probe(rtts: list[float | None]) -> None:
    way = Scripted(lambda number: rtts[number - 500])
    run = Run(way, first=500, clock=way.clock)
    due = [i * 0.1 for i in range(len(rtts))]
    run.go(due, lambda: False)
    probes = run.probes()
    assert [probe.t_s for probe in probes] == pytest.approx(due)
    assert [probe.rtt_s for probe in probes] == [rtt if rtt is None or rtt <= 3.0 else None for rtt in rtts]


def test_what_is_old_is_forgotten_and_numbers_go_on() -> None:
    way = Scripted(lambda number: None if number % 10 == 3 else 0.05)
    run = Run(way, keep_s=4.0, clock=way.clock)
    run.go(even(10), lambda: False)
    assert sorted(way.sent_s) == list(range(100))
    kept = [probe.t_s for probe in run.probes()]
    assert kept[0] == pytest.approx(5.9) and kept[-1] == pytest.approx(9.9)
    assert [probe.rtt_s is None for probe in run.probes()].count(True) == 4
