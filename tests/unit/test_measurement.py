"""Which bins count: those of streams that are up to speed, without a stall, at what will stay."""

import pytest

from mpx.engine.tuner import Sample
from mpx.tuning.measurement import Meter


def test_meter_drops_bins_of_streams_that_hardly_started() -> None:
    meter = Meter()
    meter.add(0.0, {"p": Sample(4, 0, 10**9, rtt_s=0.1)})
    bins = [meter.add(0.1 * i, {"p": Sample(4, i * 1000, 10**9, rtt_s=0.1)}) for i in range(1, 16)]
    assert bins[:6] == [None] * 6  # 10 RTT are 1 s; less than 70 % of the ramp proves nothing
    last = next(each for each in reversed(bins) if each is not None)  # a bin lasts two RTT
    assert last.up == 4 and last.worth == 1.0
    assert last.goodput_bps == pytest.approx(1000 * 8 / 0.1)


def test_meter_drops_a_bin_with_a_stall() -> None:
    meter = Meter()
    for i in range(20):
        meter.add(0.1 * i, {"p": Sample(1, i * 1000, 10**9, rtt_s=0.001)})
    assert meter.add(3.5, {"p": Sample(1, 20_000, 10**9, rtt_s=0.001)}) is None
    assert meter.add(3.6, {"p": Sample(1, 21_000, 10**9, rtt_s=0.001)}) is not None


def test_streams_that_come_and_go_by_themselves_do_not_starve_it() -> None:
    """Connections of a piece each, with a gap between two, as in MODE S; windows leave them free."""
    meter, bins, arrived = Meter(), 0, 0
    meter.ask(8)
    for i in range(600):
        streams = 7 if i % 8 == 0 else 8
        arrived += streams * 10**6
        sample = Sample(streams, arrived, 10**12, 0.05, 0, 0.0, 0.0)
        bins += meter.add(i * 0.1, {"p": sample}) is not None
    assert bins > 200


def bins_after_a_change(asked: int, expected_bps: float | None, told: float | None) -> list[float]:
    """Goodput of the bins, Mbit/s, once 8 streams that carried 100 become so many and go from 40 to 100."""
    meter, arrived, found = Meter(), 0.0, []
    meter.ask(8)
    for i in range(200):
        now = i * 0.1
        if i == 50:
            meter.ask(asked, expected_bps)
        mbps = 100.0 if i <= 50 else min(100.0, 40 * 1.04 ** (i - 50))
        arrived += mbps * 1e6 / 8 * 0.1
        sample = Sample(8 if i < 50 else asked, int(arrived), 10**12, 0.05, 0, told, told)
        measured = meter.add(now, {"p": sample})
        if i > 50 and measured is not None:
            found.append(measured.goodput_bps / 1e6)
    return found


def test_meter_waits_until_those_that_stay_have_taken_over() -> None:
    assert min(bins_after_a_change(4, None, 0.0)) >= 94


def test_meter_waits_for_what_the_streams_are_known_to_carry() -> None:
    assert min(bins_after_a_change(12, 100e6, None)) >= 94
    assert min(bins_after_a_change(12, None, None)) < 94  # of new ones that nobody tells of the ramp counts


def test_meter_waits_until_new_streams_with_free_windows_are_steady() -> None:
    assert min(bins_after_a_change(12, None, 0.0)) >= 94


def first_bin(came_s: list[float], first_bytes_s: float) -> float:
    """When the first bin of streams that windows hold back ends; 100 ms there and back."""
    meter = Meter()
    for i in range(1, 40):
        now = 0.1 * i
        streams = sum(at <= now + 1e-9 for at in came_s)
        arrived = int(1e6 * max(0.0, now - first_bytes_s + 0.1))
        sample = Sample(streams, arrived, 10**12, 0.1, 0, 0.95, 0.0)
        if meter.add(now, {"p": sample}) is not None:
            return now
    raise AssertionError("no bin")


def test_streams_that_wait_for_something_to_carry_do_not_grow_older() -> None:
    soon = first_bin([0.1] * 8, 0.1)
    assert first_bin([0.1] * 8, 1.1) == pytest.approx(soon + 1.0, abs=0.11)
    assert first_bin([0.1] * 7 + [1.1], 1.1) == pytest.approx(soon + 1.0, abs=0.11)  # the last comes with it
