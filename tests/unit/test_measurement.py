"""What the meter reads: means since the streams last changed, without a stall, and whether a queue stands."""

import pytest

from mpx.engine.tuner import Sample
from mpx.tuning.measurement import Meter, Reading


def reading(meter: Meter, length_s: float) -> Reading:
    found = meter.reading(length_s)
    assert found is not None
    return found


def sample(arrived: int, streams: int = 4, queue_s: float | None = None, retransmits: int = 0) -> Sample:
    return Sample(streams, arrived, 10**12, 0.05, retransmits, queue_s=queue_s)


def test_the_mean_of_the_last_seconds() -> None:
    meter, arrived = Meter(), 0
    for i in range(41):
        arrived += 100_000 if i <= 20 else 200_000
        meter.add(0.1 * i, {"p": sample(arrived, streams=4 if i <= 30 else 6, retransmits=i)})
    assert reading(meter, 1.0).goodput_bps == pytest.approx(16e6)
    assert reading(meter, 4.0).goodput_bps == pytest.approx(12e6)
    assert reading(meter, 2.0).streams == pytest.approx(5)
    assert reading(meter, 1.0).resent == pytest.approx(10 * 1448 / 2e6)
    assert meter.reading(4.5) is None


def test_what_was_before_a_change_of_streams_does_not_count() -> None:
    meter = Meter()
    for i in range(30):
        meter.add(0.1 * i, {"p": sample(i * 1000)})
        if i == 19:
            meter.restart()
    assert meter.reading(1.2) is None
    assert reading(meter, 1.0).goodput_bps == pytest.approx(80_000)


def test_a_stall_is_left_out() -> None:
    meter = Meter()
    for i in range(60):
        pause = 20 <= i < 35
        meter.add(0.1 * i, {"p": sample(20_000 if pause else (i - 15 * (i >= 35)) * 1000)})
    assert meter.reading(3.0) is None
    assert reading(meter, 2.0).goodput_bps == pytest.approx(80_000)


def test_during_a_stall_the_last_arrival_is_the_end() -> None:
    meter = Meter()
    for i in range(30):
        meter.add(0.1 * i, {"p": sample(min(i, 20) * 1000)})
    assert reading(meter, 1.0).goodput_bps == pytest.approx(80_000)


def test_other_paths_are_measured_anew() -> None:
    meter = Meter()
    for i in range(20):
        paths = {"p": sample(i * 1000)} if i < 10 else {"p": sample(i * 1000), "q": sample(i * 1000)}
        meter.add(0.1 * i, paths)
    assert meter.reading(1.2) is None
    assert reading(meter, 0.8).goodput_bps == pytest.approx(160_000)
    assert meter.path_bps("q", 0.5) == pytest.approx(80_000)


@pytest.mark.parametrize(("queue_s", "full"), [(None, None), (0.0005, 0.0), (0.004, 1.0)])
def test_a_queue_stands(queue_s: float | None, full: float | None) -> None:
    meter = Meter()
    for i in range(20):
        meter.add(0.1 * i, {"p": sample(i * 2_500_000, queue_s=queue_s)})
    assert reading(meter, 1.0).full == full


def test_late_acknowledgements_of_small_windows_are_no_queue() -> None:
    """Five segments for each round trip: one in three is acknowledged 40 ms late."""
    meter = Meter()
    for i in range(20):
        meter.add(0.1 * i, {"p": sample(i * 4 * 2 * 5 * 1448, queue_s=0.012)})
    assert reading(meter, 1.0).full == 0.0


def test_stalls_that_follow_one_another_are_what_the_path_is_like() -> None:
    meter, arrived = Meter(), 0
    for i in range(100):
        arrived += 10_000 * (i % 25 < 5)  # half a second in each 2.5 s
        meter.add(0.1 * i, {"p": sample(arrived)})
    assert reading(meter, 2.5).goodput_bps == pytest.approx(8 * 20_000, rel=0.1)


@pytest.mark.parametrize(("queue_s", "full", "crowded"), [(0.0005, 0, 0), (0.0045, 1, 0), (0.0055, 1, 1)])
def test_a_long_queue_is_a_tenth_of_the_round_trip(queue_s: float, full: float, crowded: float) -> None:
    meter = Meter()
    for i in range(30):
        meter.add(0.1 * i, {"p": sample(10_000_000 * i, queue_s=queue_s)})
    found = reading(meter, 2.0)
    assert (found.full, found.crowded) == (full, crowded)
