"""The tuner on simulated CUBIC streams (bench/tuner_streams.py): long paths, short queues, and company."""

import statistics

import pytest
from tuner_streams import (
    EVERY_S,
    FIRST_S,
    RUN_S,
    SHARED,
    STEADY,
    Bottleneck,
    best_fixed,
    fairness,
    run,
    together,
)

from mpx.engine.tuner import START

SHORT_QUEUE = Bottleneck(200e6, 0.1, 100)


@pytest.mark.parametrize(
    "link",
    [SHORT_QUEUE, Bottleneck(200e6, 0.05, 500), Bottleneck(20e6, 0.05, 500)],
    ids=lambda link: str(link.name),
)
def test_it_finds_what_fixed_streams_carry_and_holds_it(link: Bottleneck) -> None:
    _, best = best_fixed(link)
    runs = [run(link, f"test {i}") for i in range(3)]
    assert statistics.median(each.reached_s(0.9 * best) for each in runs) <= max(3.0, 40 * link.rtt_s)
    assert statistics.median(each.bps(0, FIRST_S) for each in runs) >= 0.92 * best
    assert statistics.median(each.bps(FIRST_S, RUN_S) for each in runs) >= STEADY * best


def test_with_windows_as_the_kernel_tunes_them_it_stays_low() -> None:
    link = Bottleneck(200e6, 0.06, 1000, None)
    for i in range(3):
        asked = run(link, f"test {i}").asked
        assert statistics.median(asked[round(20 / 0.1) :]) <= START
        assert max(asked) <= 16


def test_losses_do_not_hold_it_low() -> None:
    """At the edge a queue stands by turns; what is tried below it and carries less is given up again."""
    link = Bottleneck(100e6, 0.06, 500, None, 0.001)
    shares = [run(link, f"test {i}").bps(60, 92) / 95.7e6 for i in range(3)]
    assert statistics.median(shares) >= 0.95 and min(shares) >= 0.85


def test_transfers_that_join_share_as_evenly_as_plain_flows() -> None:
    ours, plain = fairness(SHARED[1], "test", None), fairness(SHARED[1], "test", 1)
    assert all(mine >= max(0.9, other - 0.02) for mine, other in zip(ours, plain, strict=True))


def test_on_a_full_path_nobody_goes_up() -> None:
    runs = together(SHARED[1], "test", 4, EVERY_S, 4 * EVERY_S)
    for each in runs[1:]:
        assert max(each.asked) == each.asked[0]
        assert statistics.median(each.asked[100:]) == START
