"""The default tuner: where it starts, how large its steps are, and what it makes of the first of them."""

from collections.abc import Callable

import pytest
from made_up_paths import Path, drive, knee, settled

from mpx.tuning.adaptive import AutoTuner


@pytest.mark.parametrize("rtt_s", [None, 0.001, 0.2])
def test_it_starts_with_its_share(rtt_s: float | None) -> None:
    path = {"p": Path(knee(9), rtt_s).sample()}
    assert [d.streams for d in AutoTuner().observe(0.0, path)] == [4]
    assert [d.streams for d in AutoTuner(share=2).observe(0.0, path)] == [2]
    assert [d.streams for d in AutoTuner(share=20).observe(0.0, path)] == [20]
    assert [d.streams for d in AutoTuner(3).observe(0.0, path)] == [3]


@pytest.mark.parametrize(
    ("rtt_s", "second"), [(0.001, 8), (0.002, 8), (0.01, 16), (0.04, 16), (0.06, 24), (0.08, 31), (0.2, 32)]
)
def test_the_first_step_is_larger_on_a_long_path(rtt_s: float, second: int) -> None:
    """At 1 ms the streams have less than a segment under way, as where a path has no room for them."""
    log = drive(AutoTuner(), {"p": Path(knee(100), rtt_s)}, 10)
    assert [d.streams for _, d in log[:2]] == [4, second]


def test_streams_that_were_switched_are_searched_for_anew() -> None:
    """As many carry as much as before, but eight would, too: only trials show that, and they are rare."""
    path, tuner = Path(knee(40)), AutoTuner()
    drive(tuner, {"p": path}, 60)
    path.curve = knee(8)
    tuner.disturbed(60.0)
    assert settled(drive(tuner, {"p": path}, 25, start_s=60.0), 85, 80) <= 12


def test_nothing_is_disturbed_before_there_is_anything() -> None:
    tuner = AutoTuner()
    tuner.disturbed(0.0)
    assert len(drive(tuner, {"p": Path(knee(4))}, 5)) >= 2


def test_a_path_on_which_more_streams_carry_less_is_left_soon() -> None:
    path = Path(lambda n: 1e9 * min(n / 4, 4 / n))
    log = drive(AutoTuner(), {"p": path}, 30)
    assert max(d.streams for _, d in log) == 16
    assert settled(log, 30, 4) <= 6


class Overshooting(Path):
    """New streams carry `times` their share at first, as before their first losses; sixty fill it."""

    def __init__(self, times: Callable[[int], float]) -> None:
        super().__init__(lambda n: min(1e9, knee(60)(n) * (times(round(n)) if self._is_new else 1.0)))
        self._is_new, self._changed_s, self._count = True, 0.0, 0

    def step(self, now_s: float, dt: float) -> None:
        if len(self.opened) != self._count:
            self._changed_s, self._count = now_s, len(self.opened)
        self._is_new = now_s < self._changed_s + 0.65
        super().step(now_s, dt)


def test_streams_that_carry_more_at_first_are_no_reason_to_go_back() -> None:
    log = drive(AutoTuner(), {"p": Overshooting(lambda n: 3.0 if n <= 16 else 1.0)}, 30)
    counts = [d.streams for _, d in log]
    rise = counts[: counts.index(max(counts)) + 1]
    assert rise == sorted(rise) and max(rise) >= 55


def test_streams_of_which_only_the_first_carried_more_are_added_to_without_a_rest() -> None:
    log = drive(AutoTuner(), {"p": Overshooting(lambda n: 3.0 if n <= 4 else 1.0)}, 30)
    assert min(at for at, d in log if d.streams >= 55) < 8


def test_more_streams_that_brought_nothing_are_tried_without_again() -> None:
    """No queue is seen, as where a policer drops: four carry all, and sixteen as much."""
    path = Path(knee(4))
    path.extra = {"queue_s": 0.0, "limited_by_receiver": 0.0, "limited_by_sender": 0.0}
    log = drive(AutoTuner(), {"p": path}, 60)
    assert max(d.streams for _, d in log) == 16
    assert min(at for at, d in log if at > 1 and d.streams <= 6) < 12


def test_streams_that_come_late_do_not_bound_the_number() -> None:
    """Twelve of sixteen open at first, the others later; thirty are needed."""
    tuner, path = AutoTuner(), Path(knee(30), most=12)
    assert any(d.reason.startswith("only 12 of") for _, d in drive(tuner, {"p": path}, 4.5))
    path.most = 100
    assert max(d.streams for _, d in drive(tuner, {"p": path}, 10, start_s=4.5)) >= 24
