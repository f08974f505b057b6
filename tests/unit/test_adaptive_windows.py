"""The default tuner where receivers' windows hold streams back."""

from made_up_paths import Path, drive, knee, settled

from mpx.tuning.adaptive import AutoTuner

WINDOWS_BIND = {"limited_by_receiver": 0.95, "limited_by_sender": 0.0}


def test_while_windows_bind_many_streams_grow_by_less() -> None:
    """The streams of a larger step would overflow the queue of those that run."""
    path = Path(knee(200), rtt_s=0.1)
    path.extra = dict(WINDOWS_BIND)
    log = [decision for _, decision in drive(AutoTuner(), {"p": path}, 8)]
    assert [decision.streams for decision in log[:5]] == [4, 32, 45, 63, 89]
    assert all("windows limit the streams" in decision.reason for decision in log[1:5])


def test_a_receiver_that_reads_slowly_closes_windows_too_and_gets_no_more_streams() -> None:
    path = Path(knee(36), rtt_s=0.1)
    path.extra = dict(WINDOWS_BIND)
    log = drive(AutoTuner(), {"p": path}, 12)
    assert max(decision.streams for _, decision in log) < 256 and settled(log, 12, 5) <= 100


def test_no_look_goes_where_windows_could_not_carry_it() -> None:
    """Each of 20 streams carries 50 Mbit/s at its window; fewer than 18 could not carry 900 of 1000."""
    path, tuner = Path(knee(20), rtt_s=0.1), AutoTuner()
    asked: list[int] = []
    for i in range(1200):
        bound = len(path.opened) <= 20 and 0.1 * i - max(path.opened, default=0.0) > 1
        path.extra = {"limited_by_receiver": 0.95 * bound, "limited_by_sender": 0.0, "window_bps": 50e6}
        for decision in tuner.observe(0.1 * i, {"p": path.sample()}):
            path.obey(decision.streams, 0.1 * i)
            asked += [decision.streams] * (i > 400)  # it has been there by then, and knows the windows
        path.step(0.1 * i, 0.1)
    assert asked and min(asked) >= 18


def test_streams_are_no_older_than_what_they_carry() -> None:
    """They were given something to carry only half a second after they had been opened."""
    path, tuner = Path(knee(64), rtt_s=0.1), AutoTuner(8)
    path.extra = {"limited_by_receiver": 0.95, "limited_by_sender": 0.0}
    late = []
    for i in range(20):
        for decision in tuner.observe(0.1 * i, {"p": path.sample()}):
            path.obey(decision.streams, 0.1 * i)
            late.append((0.1 * i, decision.streams))
        if i >= 5:
            path.opened = [0.5] * len(path.opened)
            path.step(0.1 * i, 0.1)
    assert [streams for _, streams in late] == [8, 32] and late[1][0] >= 0.5 + 1.2


def test_windows_that_have_grown_bind_no_more() -> None:
    path, tuner = Path(knee(40), rtt_s=0.02), AutoTuner(32)
    path.extra = {**WINDOWS_BIND, "window_bps": 25e6}
    drive(tuner, {"p": path}, 5)
    path.extra = {"limited_by_receiver": 0.0, "limited_by_sender": 0.0, "window_bps": 1e9}
    path.curve = knee(2)
    assert settled(drive(tuner, {"p": path}, 40, start_s=5.0), 45, 30) <= 6
