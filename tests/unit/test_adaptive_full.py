"""The default tuner on a path that is full: none are added, and down it goes as far as it stays full."""

import statistics
from collections.abc import Callable

import pytest
from made_up_paths import Curve, Path, drive, knee, noisy, scaled, settled

from mpx.engine.tuner import START, Sample
from mpx.tuning.adaptive import AutoTuner

FULL = {"queue_s": 0.02, "limited_by_receiver": 0.0, "limited_by_sender": 0.0}


def test_a_full_path_gets_no_more_streams_and_loses_those_it_does_not_need() -> None:
    path, tuner = Path(knee(2)), AutoTuner(initial=8)
    path.extra = FULL
    log = drive(tuner, {"p": path}, 60)
    counts = [d.streams for _, d in log]
    assert max(counts) == 8 and counts == sorted(counts, reverse=True) and counts[-1] == START


def test_no_streams_are_added_where_the_rate_that_is_permitted_is_reached() -> None:
    path = Path(lambda n: min(2e8, 1e8 * n))
    path.extra = {"queue_s": 0.0, "limited_by_receiver": 0.0, "limited_by_sender": 0.0}
    assert {d.streams for _, d in drive(AutoTuner(4, rate_bps=2e8), {"p": path}, 60)} == {4}
    assert max(d.streams for _, d in drive(AutoTuner(4, rate_bps=4e8), {"p": path}, 60)) > 4


def test_what_others_take_of_a_full_path_is_left_to_them() -> None:
    """Sixteen streams beside twelve of others: each that goes takes its share along."""
    path = Path(lambda n: 1e9 * n / (n + 12))
    path.extra = FULL
    assert drive(AutoTuner(initial=16), {"p": path}, 60)[-1][1].streams == START


def test_a_queue_of_others_does_not_stop_streams_that_windows_hold_back() -> None:
    path, tuner = Path(knee(30)), AutoTuner()
    path.extra = {"queue_s": 0.02, "limited_by_receiver": 0.95, "limited_by_sender": 0.0}
    assert settled(drive(tuner, {"p": path}, 20), 20, 10) >= 27


def test_paced_streams_are_held_back_by_windows_though_they_never_wait_for_them() -> None:
    """As BBR's: the kernel counts no time. Beside a queue as long as the path each has half of it."""
    path = Path(knee(30), 0.05)
    path.extra = FULL | {"queue_s": 0.05}
    assert settled(drive(AutoTuner(), {"p": path}, 20), 20, 10) == START
    path = Path(knee(30), 0.05)
    path.extra = FULL | {"queue_s": 0.05, "window_bps": 2 * 1e9 / 30}
    assert settled(drive(AutoTuner(), {"p": path}, 20), 20, 10) >= 27


def test_streams_that_files_keep_are_not_asked_to_go_again_and_again() -> None:
    """Twelve large files keep twelve, whatever the queue says."""
    path = Path(knee(2), kept=12)
    path.extra = FULL
    log = drive(AutoTuner(initial=12), {"p": path}, 90)
    assert 1 <= len([d for _, d in log if d.streams < 12]) <= 4  # once in 30 s


def test_what_windows_let_them_carry_is_a_wall_on_a_full_path_too() -> None:
    path, tuner = Path(knee(2)), AutoTuner(initial=12)
    path.extra = FULL | {"queue_s": 0.0022, "window_bps": 1e9 / 9}
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
    assert log[0][1].streams == 12 and log[-1][1].streams == START


def test_other_paths_have_room_for_more() -> None:
    tuner = AutoTuner()
    drive(tuner, {"first": Path(knee(40), most=4)}, 10)
    assert settled(drive(tuner, {"second": Path(knee(40))}, 10, start_s=10), 20, 5) >= 30


def test_more_streams_that_fill_the_path_and_gain_stay() -> None:
    """Others have left: six streams carry what they did, and nine carry half as much more, with a queue."""
    path, tuner = Path(knee(5), kept=6), AutoTuner()
    path.extra = FULL | {"queue_s": 0.0}
    log = drive(tuner, {"p": path}, 30)
    path.curve = knee(20, 4e9)
    for i in range(600):
        path.extra["queue_s"] = 0.02 * (len(path.opened) >= 18)
        log += drive(tuner, {"p": path}, 0.1, start_s=30 + 0.1 * i)
    assert 18 <= log[-1][1].streams <= 28


def test_what_stands_in_the_queue_is_not_needed_where_windows_bind() -> None:
    """A queue of half a round trip behind 30 windows: a third of 45 streams stand in it."""
    carried = busy(knee(30), lambda n: 0.08 * max(0.0, n / 30 - 1), lambda n: 0.3 if n > 30 else 0.95, 0.08)
    assert min(carried) >= 0.975


def test_what_stands_in_the_queue_tells_nothing_where_losses_hold_the_streams() -> None:
    """A queue of a whole round trip stands while sixteen fill the path, and eight would not."""
    carried = busy(knee(16), lambda n: 0.02 * (n >= 16), lambda _: 0.05, 0.02)
    assert statistics.median(carried) >= 0.98


def busy(
    curve: Curve, queue_s: Callable[[int], float], held: Callable[[int], float], rtt_s: float
) -> list[float]:
    """Mean share of the best goodput from 10 to 60 s, in three runs with 5 % of noise."""
    carried = []
    for seed in range(3):
        path, tuner, shares = Path(noisy(curve, seed, 0.05), rtt_s), AutoTuner(), []
        for i in range(600):
            n = len(path.opened)
            path.extra = {"queue_s": queue_s(n), "limited_by_receiver": held(n), "limited_by_sender": 0.0}
            drive(tuner, {"p": path}, 0.1, start_s=0.1 * i)
            shares.append(curve(len(path.opened)) / curve(1000))
        carried.append(statistics.mean(shares[100:]))
    return carried


def test_between_too_few_and_those_that_fill_the_path_it_goes_on_halving() -> None:
    """Nine fill it, and steps of 0.7 would stay at twelve, as eight do not."""
    path, tuner, counts = Path(knee(9)), AutoTuner(12), []
    for i in range(1200):
        path.extra = FULL | {"queue_s": 0.02 * (len(path.opened) >= 9)}
        drive(tuner, {"p": path}, 0.1, start_s=0.1 * i)
        counts.append(len(path.opened))
    assert statistics.median(counts[600:]) in (9, 10)


@pytest.mark.parametrize("share", [1, 2, 6])
def test_on_a_full_path_as_many_stay_as_the_share_says(share: int) -> None:
    path = Path(lambda n: 1e9 * n / (n + 3))
    path.extra = FULL
    log = drive(AutoTuner(share=share), {"p": path}, 60)
    assert log[0][1].streams == log[-1][1].streams == share
    assert drive(AutoTuner(12, share=share), {"p": path}, 60)[-1][1].streams == share


def test_fewer_streams_than_the_share_become_it_where_others_fill_the_path() -> None:
    """As a controller predicts one for a short path; where the path has room the search goes on anyway."""
    path = Path(lambda n: 1e9 * n / (n + 3))
    path.extra = FULL
    assert drive(AutoTuner(initial=1), {"p": path}, 20)[-1][1].streams == START
    assert drive(AutoTuner(initial=2, share=8), {"p": path}, 20)[-1][1].streams == 8


def test_while_we_take_over_from_others_streams_are_closed_none_the_less() -> None:
    """Goodput grows for a minute, so that no trial is paid for by what was carried before; a queue stands."""
    path, tuner, counts = Path(knee(1)), AutoTuner(16), []
    path.extra = FULL
    for i in range(300):
        path.curve = scaled(knee(1), 0.1 + 0.1 * i / 10)
        drive(tuner, {"p": path}, 0.1, start_s=0.1 * i)
        counts.append(len(path.opened))
    assert counts[-1] == START


@pytest.mark.parametrize(
    ("queue_s", "yields", "stays"), [(0.02, True, False), (0.02, False, True), (0.0015, True, True)]
)
def test_streams_are_left_to_others_where_they_wait_in_a_long_queue(
    queue_s: float, yields: bool, stays: bool
) -> None:
    """A router that keeps its queues short leaves each its share: fewer would only carry less."""
    path = Path(lambda n: 1e9 * n / (n + 12))
    path.extra = FULL | {"queue_s": queue_s}
    last = drive(AutoTuner(initial=16, yields=yields), {"p": path}, 60)[-1][1].streams
    if not yields:
        assert last >= 16
    else:
        assert 15 <= last <= 16 if stays else last == START


@pytest.mark.parametrize("policed", [False, True])
@pytest.mark.parametrize(("yields", "share", "last"), [(True, 4, 4), (True, 1, 1), (False, 4, 5)])
def test_losses_show_that_more_streams_only_take_from_others(
    yields: bool, share: int, last: int, policed: bool
) -> None:
    """A router with a queue for each stream, or a policer: no long queue stands, and more carry more."""
    counts = beside_one_with_losses(AutoTuner(share=share, yields=yields), share, policed=policed)
    assert max(counts) > 4 * share  # before it was known
    assert counts[-1] == last if yields else counts[-1] >= last


@pytest.mark.parametrize("policed", [False, True])
def test_streams_that_windows_hold_back_are_not_closed_for_losses(policed: bool) -> None:
    """So many of them fill no path: what they lost was lost with more."""
    counts = beside_one_with_losses(AutoTuner(), 4, policed=policed, windows=0.9)
    assert counts[-1] > 4


def test_where_few_streams_lose_at_random_a_policer_bears_more() -> None:
    """Each carries a tenth of the rate, as one segment in five hundred is lost; beyond ten many more are."""
    tuner, streams, arrived, lost = AutoTuner(), 4, 0.0, 0.0
    counts = []
    for tick in range(900):
        segments = 0.1 * 800 * min(streams, 10)
        arrived += segments * 1448
        lost += segments * 0.002 * max(1.0, streams / 10) ** 4
        sample = Sample(streams, round(arrived), 10**13, 0.04, round(lost), 0.0, 0.0, queue_s=0.0)
        for decision in tuner.observe(0.1 * tick, {"p": sample}):
            streams = decision.streams
        counts.append(streams)
    assert max(counts) >= 16 and 4 in counts[50:]  # too many, and then the share
    assert 8 <= counts[-1] <= 14


def beside_one_with_losses(tuner: AutoTuner, share: int, *, policed: bool, windows: float = 0.0) -> list[int]:
    """Return the streams of a minute beside one of others, where what is lost grows with their number."""
    counts = [share]
    arrived = lost = queued = queued_lost = 0.0
    for tick in range(600):
        streams = counts[-1]
        segments = 0.1 * 8000 * streams / (streams + 1)
        stands = not policed and tick % 3 == 0
        more = segments * (0.0005 * streams ** (4 / 3) if policed else 0.004 * stands)
        arrived, lost = arrived + segments * 1448, lost + more
        queued, queued_lost = queued + stands * segments * 1448, queued_lost + stands * more
        sample = Sample(
            streams,
            round(arrived),
            10**13,
            0.04,
            round(lost),
            windows,
            0.0,
            queue_s=0.002 * stands,
            queued_bytes=round(queued),
            queued_lost=round(queued_lost),
        )
        counts += [decision.streams for decision in tuner.observe(0.1 * tick, {"p": sample})]
    return counts


@pytest.mark.parametrize(("yields", "grows"), [(True, False), (False, True)])
def test_only_who_does_not_yield_takes_more_of_what_others_fill(yields: bool, grows: bool) -> None:
    """Beside one stream of another kind that has 30 times the share of ours."""
    path = Path(lambda n: 1e9 * n / (n + 30))
    path.extra = FULL | {"queue_s": 0.02}
    last = drive(AutoTuner(yields=yields), {"p": path}, 60)[-1][1].streams
    assert (last >= 16) is grows


def test_one_trial_after_the_other_does_not_take_a_little_each_time() -> None:
    """Each 0.7 of the streams carry 97.5 %, and nothing is known of queues."""
    path = Path(lambda n: 1e9 * (min(n, 48) / 48) ** 0.07)
    assert settled(drive(AutoTuner(initial=48), {"p": path}, 120), 120, 60) >= 28


def test_no_fewer_than_the_windows_say() -> None:
    path = Path(knee(2))
    path.extra = FULL | {"window_bps": 1e9 / 40}
    assert min(d.streams for _, d in drive(AutoTuner(initial=60), {"p": path}, 60)) == 40


def test_the_first_step_from_one_stream_is_eightfold_at_most() -> None:
    """A controller that predicts one stream knows of the path; 32 were far more than it had use for."""
    path = Path(knee(64))
    path.rtt_s = 0.1
    decided = drive(AutoTuner(1), {"p": path}, 5)
    assert [decision.streams for _, decision in decided[:2]] == [1, 8]


def test_in_vain_on_a_path_that_it_fills_alone_fast_waits_a_minute() -> None:
    path = Path(knee(4))
    path.extra = FULL
    decided = drive(AutoTuner(yields=False), {"p": path}, 60)
    assert sum("others may fill" in decision.reason for _, decision in decided) == 1
