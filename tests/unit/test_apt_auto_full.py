"""The default tuner on a path that is full: none are added, and down it goes as far as it stays full."""

from made_up_paths import Path, drive, knee, settled

from mpx import apt_full
from mpx.apt_auto import AutoTuner

FULL = {"queue_s": 0.02, "limited_by_receiver": 0.0, "limited_by_sender": 0.0}


def test_a_full_path_gets_no_more_streams_and_loses_those_it_does_not_need() -> None:
    path, tuner = Path(knee(2)), AutoTuner(initial=8)
    path.extra = FULL
    log = drive(tuner, {"p": path}, 60)
    counts = [d.streams for _, d in log]
    assert max(counts) == 8 and counts == sorted(counts, reverse=True) and counts[-1] == apt_full.SHARING


def test_a_queue_of_others_does_not_stop_streams_that_windows_hold_back() -> None:
    path, tuner = Path(knee(30)), AutoTuner()
    path.extra = {"queue_s": 0.02, "limited_by_receiver": 0.95, "limited_by_sender": 0.0}
    assert settled(drive(tuner, {"p": path}, 20), 20, 10) >= 27


def test_streams_that_files_keep_are_not_asked_to_go_again_and_again() -> None:
    """Twelve large files keep twelve, whatever the queue says."""
    path, tuner = Path(knee(2)), AutoTuner(initial=12)
    path.extra, asked = FULL, []
    for i in range(900):
        now = i * 0.1
        for decision in tuner.observe(now, {"p": path.sample()}):
            asked.append(decision.streams)
            path.obey(max(12, decision.streams), now)
        path.step(now, 0.1)
    assert 1 <= len([n for n in asked if n < 12]) <= 4  # once in 30 s


def test_what_windows_let_them_carry_is_a_wall_on_a_full_path_too() -> None:
    path, tuner = Path(knee(2)), AutoTuner(initial=12)
    path.extra = FULL | {"window_bps": 1e9 / 9}
    assert min(d.streams for _, d in drive(tuner, {"p": path}, 60)) == 9


def test_many_paths_of_one_stream_stay_as_they_are() -> None:
    paths = {f"path {i}": Path(knee(1)) for i in range(8)}
    for path in paths.values():
        path.extra = FULL
    log = drive(AutoTuner(initial=1), paths, 30)
    assert {d.streams for _, d in log} == {1}


def test_other_paths_have_other_windows() -> None:
    tuner, first, second = AutoTuner(initial=12), Path(knee(2)), Path(knee(2))
    first.extra, second.extra = FULL | {"window_bps": 1e9 / 9}, FULL
    drive(tuner, {"first": first}, 30)
    log = drive(tuner, {"second": second}, 60, start_s=30)
    assert log[0][1].streams == 12 and log[-1][1].streams == apt_full.SHARING
