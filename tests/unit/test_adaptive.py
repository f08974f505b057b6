"""The default tuner on small made-up networks: where it ends, what it tolerates, what it never does."""

import math
from dataclasses import replace
from itertools import pairwise
from random import Random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_paths import CurveOfShares, Path, drive, knee, scaled, settled

from mpx.engine.tuner import Decision, Sample
from mpx.tuning.adaptive import AutoTuner


@pytest.mark.parametrize("k", [1, 2, 5, 12, 30, 70, 120])
def test_ends_where_more_carry_no_more(k: int) -> None:
    """Four at least, as for all that share a path."""
    log = drive(AutoTuner(), {"p": Path(knee(k))}, 60)
    assert max(4, 0.9 * k) <= settled(log, 60, 30) <= max(4, 1.5 * k)


def test_flat_ends_low_and_stays_calm() -> None:
    log = drive(AutoTuner(initial=32), {"p": Path(knee(1))}, 60)
    late = [d.streams for at, d in log if at > 30]
    assert settled(log, 60, 30) == 4
    assert max(late) <= 6 and len(late) <= 16


def test_a_network_that_changes_is_searched_again() -> None:
    path, tuner = Path(knee(6)), AutoTuner()
    drive(tuner, {"p": path}, 20)
    path.curve = knee(40)
    log = drive(tuner, {"p": path}, 25, start_s=20)
    assert 36 <= settled(log, 45, 32) <= 72


def test_a_change_that_only_makes_streams_superfluous_is_noticed() -> None:
    path, tuner = Path(knee(40)), AutoTuner()
    drive(tuner, {"p": path}, 20)
    path.curve = knee(5)
    log = drive(tuner, {"p": path}, 100, start_s=20)
    assert 4.5 <= settled(log, 120, 105) <= 10


def test_lumpy_goodput_does_not_kill_it() -> None:
    """A quarter up or down in each tenth of a second: mostly right, never far out."""
    ends, steady = [], knee(20)
    for seed in range(12):
        noise = Random(seed)
        path = Path(lambda n, noise=noise: steady(n) * max(0.05, noise.gauss(1, 0.25)))  # type: ignore[misc]
        ends.append(settled(drive(AutoTuner(), {"p": path}, 150), 150, 100))
    assert 18 <= median(ends) <= 40
    assert min(ends) >= 13 and max(ends) <= 100


@pytest.mark.parametrize(
    ("rtt_s", "pause_s", "each_s"), [(0.1, 1.0, 15.0), (0.2, 2.0, 20.0), (0.02, 0.6, 10.0)]
)
def test_pauses_of_a_disk_do_not_look_like_missing_streams(
    rtt_s: float, pause_s: float, each_s: float
) -> None:
    path, tuner, last = Path(knee(20), rtt_s), AutoTuner(), 0
    steady = path.curve
    for tick in range(3000):
        path.curve = (lambda _: 0.0) if (0.1 * tick) % each_s < pause_s else steady
        for _, decision in drive(tuner, {"p": path}, 0.1, start_s=0.1 * tick):
            last = decision.streams
    assert 18 <= last <= 70


@pytest.mark.parametrize("standing", [1, 3])
def test_no_running_away_beside_standing_traffic(standing: int) -> None:
    """n / (n + m) rises for ever, as all more is taken from others."""
    curve = CurveOfShares(standing)
    n = settled(drive(AutoTuner(), {"p": Path(curve)}, 60), 60, 15)
    assert 0.75 * curve(256) <= curve(n) <= 0.95 * curve(256)


def test_trials_become_rarer_until_something_changes() -> None:
    path, tuner = Path(knee(10)), AutoTuner()
    trials = [at for at, d in drive(tuner, {"p": path}, 120) if "trial of" in d.reason]
    waits = [b - a for a, b in pairwise(trials)]
    assert waits[0] <= 4 and sum(waits[-3:]) >= 15
    path.curve = knee(40, 4e9)
    later = drive(tuner, {"p": path}, 60, start_s=120)
    assert later and settled(later, 180, 170) >= 36


def test_streams_that_come_up_to_speed_slowly_are_no_bend() -> None:
    class Slow(Path):
        carried = 0.0

        def step(self, now_s: float, dt: float) -> None:
            self.carried += (self.curve(len(self.opened)) - self.carried) * min(1.0, dt / 0.25)
            self.arrived += self.carried * dt / 8

    log = drive(AutoTuner(), {"p": Slow(knee(8))}, 40)
    assert 7.2 <= settled(log, 40, 20) <= 12


@pytest.mark.parametrize("recovery_s", [2.0, 5.0])
@pytest.mark.parametrize("kept", [0.0, 0.7])
def test_goodput_that_recovers_slowly_from_each_change_is_no_shortfall(
    recovery_s: float, kept: float
) -> None:
    class Recovering(Path):
        carried, before = 0.0, 0

        def step(self, now_s: float, dt: float) -> None:
            if len(self.opened) != self.before:
                self.carried *= kept
            self.before = len(self.opened)
            self.carried += (self.curve(self.before) - self.carried) * dt / recovery_s
            self.arrived += self.carried * dt / 8

    log = drive(AutoTuner(), {"p": Recovering(knee(20))}, 120)
    assert 19 <= settled(log, 120, 80) <= 40
    assert max(d.streams for at, d in log if at > 15) <= 50


def test_counters_that_move_once_a_second_still_count() -> None:
    class Lumpy(Path):
        def sample(self) -> Sample:
            told = super().sample()
            if len(self.opened) and self.clock - self.told_s >= 1.0 - 1e-9:
                self.told_s, self.told = self.clock, told.arrived_bytes
            return Sample(told.streams, self.told, told.bytes_left, told.rtt_s)

        told_s, told, clock = 0.0, 0, 0.0

        def step(self, now_s: float, dt: float) -> None:
            super().step(now_s, dt)
            self.clock = now_s + dt

    assert 13 <= settled(drive(AutoTuner(), {"p": Lumpy(knee(15))}, 60), 60, 25) <= 40


def test_a_pause_of_the_source_is_not_taken_for_a_result() -> None:
    path, tuner = Path(knee(10)), AutoTuner()
    before = settled(drive(tuner, {"p": path}, 15), 15, 8)
    curve, path.curve = path.curve, lambda n: 0.0
    assert drive(tuner, {"p": path}, 1.5, start_s=15) == []
    path.curve = curve
    assert (
        settled([(0.0, Decision("p", before, "-")), *drive(tuner, {"p": path}, 15, 16.5)], 31.5, 16.5)
        == before
    )


def test_streams_that_never_come_are_not_waited_for() -> None:
    path = Path(knee(50), most=9)
    log = drive(AutoTuner(), {"p": path}, 30)
    gave_up = [d for _, d in log if d.reason.startswith("only 9 of")]
    assert gave_up and gave_up[0].streams == 9
    assert all(d.streams <= 9 for at, d in log if at > 12)


def test_streams_that_pause_between_files_have_come() -> None:
    class Pausing(Path):
        def sample(self) -> Sample:
            told = super().sample()
            self.asked += 1
            few = told.streams // 2 + 1 if self.asked % 10 < 4 else told.streams
            return Sample(few, told.arrived_bytes, told.bytes_left, told.rtt_s)

        asked = 0

    log = drive(AutoTuner(), {"p": Pausing(knee(20))}, 30)
    assert not [d for _, d in log if d.reason.startswith("only")]


def test_the_end_of_a_ramp_does_not_look_like_a_curve_that_rises() -> None:
    """Here streams come up to speed half a step later than the meter thinks."""
    log = drive(AutoTuner(), {"p": Path(knee(10))}, 60)
    assert max(d.streams for at, d in log if at > 5) <= 30


def test_no_exploring_when_little_is_left() -> None:
    path = Path(knee(30))
    path.left = 0.0
    assert len(drive(AutoTuner(), {"p": path}, 10)) == 1


def test_the_first_step_comes_within_a_second() -> None:
    log = drive(AutoTuner(), {"p": Path(knee(60))}, 3)
    assert log[1][0] < 1.0 and log[1][1].streams >= 16


def test_an_unknown_rtt_is_no_obstacle() -> None:
    log = drive(AutoTuner(), {"p": Path(knee(12), rtt_s=None)}, 30)
    assert 11 <= settled(log, 30, 10) <= 21


def test_no_looking_upwards_while_much_is_sent_again() -> None:
    path, tuner = Path(knee(10)), AutoTuner()
    drive(tuner, {"p": path}, 10)
    for i in range(300):
        now = 10 + i * 0.1
        path.extra = {"retransmits": int(0.2 * path.arrived / 1448)}
        for decision in tuner.observe(now, {"p": path.sample()}):
            assert decision.streams <= (len(path.opened) if "; trial of" in decision.reason else 20)
            path.obey(decision.streams, now)
        path.step(now, 0.1)


def test_one_path_at_a_time_in_a_group() -> None:
    paths = {"a": Path(knee(8)), "b": Path(knee(8))}
    log = drive(AutoTuner(initial={"a": 2, "b": 3}), paths, 40)
    assert [d.streams for at, d in log if at == 0] == [2, 3]
    later = [at for at, _ in log if at > 0]
    assert len(later) == len(set(later))
    assert sum(path.curve(len(path.opened)) for path in paths.values()) >= 0.8 * 2e9
    assert all(len(path.opened) >= 1 for path in paths.values())


def test_a_path_may_leave_and_another_come() -> None:
    a, b, tuner = Path(knee(8)), Path(knee(3)), AutoTuner()
    drive(tuner, {"a": a}, 10)
    drive(tuner, {"a": a, "b": b}, 10, start_s=10)
    log = drive(tuner, {"b": b}, 20, start_s=20)
    assert all(d.path == "b" for _, d in log)


def test_senseless_limits_are_refused() -> None:
    with pytest.raises(ValueError):
        AutoTuner(max_streams=0)


@settings(max_examples=30)
@given(
    steps=st.lists(
        st.tuples(st.floats(0.0, 3.0), st.integers(0, 40), st.integers(0, 10**9), st.floats(0.0, 1.0)),
        min_size=1,
        max_size=60,
    ),
    initial=st.integers(1, 1000),
    most=st.integers(1, 300),
    rtt=st.one_of(st.none(), st.floats(0.0001, 1.0)),
)
def test_whatever_comes_decisions_stay_sane(
    steps: list[tuple[float, int, int, float]], initial: int, most: int, rtt: float | None
) -> None:
    tuner, now, arrived = AutoTuner(initial, most), 0.0, 0
    for pause, streams, moved, held in steps:
        now, arrived = now + pause, arrived + moved
        sample = Sample(min(streams, most), arrived, 10**12, rtt, 0, held, 0.0)
        for decision in tuner.observe(now, {"p": sample}):
            assert decision.path == "p" and 1 <= decision.streams <= most
            assert "nan" not in decision.reason


def test_never_more_than_the_cap() -> None:
    log = drive(AutoTuner(initial=100, max_streams=150), {"p": Path(knee(1000))}, 20)
    assert max(d.streams for _, d in log) == 150


def test_every_trial_that_carries_less_leads_back() -> None:
    """To the number before it; and in the end it is at the bend, where only trials are made."""
    log = [d for _, d in drive(AutoTuner(), {"p": Path(knee(20))}, 90)]
    returns = [i for i, d in enumerate(log) if "returning" in d.reason]
    assert returns and all(log[i].streams == log[i - 2].streams for i in returns)
    assert all("trial of" in log[i - 1].reason for i in returns)
    assert 20 <= settled(list(enumerate(log)), len(log), len(log) - 4) <= 28


def test_a_look_whose_streams_go_again_ends() -> None:
    path, tuner = Path(knee(8)), AutoTuner()
    log, now = drive(tuner, {"p": path}, 20), 20.0
    for i in range(600):
        now = 20 + i * 0.1
        for decision in tuner.observe(now, {"p": path.sample()}):
            log.append((now, decision))  # and nothing is done
        path.step(now, 0.1)
    assert log[-1][1].streams >= 1 and any("streams open after" in d.reason for _, d in log)


def test_streams_that_wait_for_those_before_are_waited_for() -> None:
    path, tuner = Path(knee(8)), AutoTuner()
    drive(tuner, {"p": path}, 20)
    for i in range(600):
        now = 20 + i * 0.1
        for decision in tuner.observe(now, {"p": replace(path.sample(), changing=True)}):
            assert "open after" not in decision.reason
        path.step(now, 0.1)


def test_trials_of_fewer_streams_are_paid_for() -> None:
    """Twenty fill the path exactly, and after some were closed it takes seconds to be full again."""
    path, tuner, changed_s, lost_bits = Path(knee(20)), AutoTuner(20), -100.0, 0.0
    for i in range(6000):
        now = 0.1 * i
        path.curve = scaled(knee(20), 1 - 0.5 * math.exp(-(now - changed_s) / 4))
        full = len(path.opened) >= 20
        path.extra = {"queue_s": 0.02 * full, "limited_by_receiver": 0.0, "limited_by_sender": 0.0}
        for decision in tuner.observe(now, {"p": path.sample()}):
            changed_s = now if decision.streams < len(path.opened) else changed_s
            path.obey(decision.streams, now)
        before = path.arrived
        path.step(now, 0.1)
        lost_bits += 1e9 * 0.1 - 8 * (path.arrived - before) if i >= 300 else 0.0
    assert lost_bits < 0.03 * 1e9 * 570


def test_streams_that_every_file_keeps_are_not_asked_to_go_for_ever() -> None:
    log = drive(AutoTuner(), {"p": Path(knee(2), kept=4)}, 90)
    assert not [d for _, d in log if d.streams < 4]


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 3.0), st.integers(0, 20), st.integers(0, 20), st.integers(0, 10**9),
            st.one_of(st.none(), st.floats(-0.1, 0.5)), st.booleans(),
        ),
        min_size=1,
        max_size=60,
    ),
    st.integers(2, 40),
)  # fmt: skip
def test_two_paths_whatever_they_do(
    steps: list[tuple[float, int, int, int, float | None, bool]], most: int
) -> None:
    tuner, now, arrived, asked = AutoTuner(4, most), 0.0, 0, {"a": 4, "b": 4}
    for pause, a, b, moved, queue_s, obedient in steps:
        now, arrived = now + pause, arrived + moved
        counts = asked if obedient else {"a": a, "b": b}
        samples = {name: Sample(n, arrived, 10**12, 0.02, 0, 0.1, 0.0, queue_s) for name, n in counts.items()}
        for decision in tuner.observe(now, samples):
            assert decision.streams >= 1 and "nan" not in decision.reason
            asked[decision.path] = decision.streams


def test_the_first_step_goes_to_what_was_found_before_if_the_path_has_room() -> None:
    log = drive(AutoTuner(expected=50), {"p": Path(knee(40))}, 20)
    assert [d.streams for _, d in log[:2]] == [4, 50]


def test_what_was_found_before_is_not_had_of_a_path_that_others_fill() -> None:
    path = Path(lambda n: 1e9 * n / (n + 1))
    path.extra = {"queue_s": 0.02, "limited_by_receiver": 0.0, "limited_by_sender": 0.0}
    assert {d.streams for _, d in drive(AutoTuner(expected=50), {"p": path}, 30)} == {4}
