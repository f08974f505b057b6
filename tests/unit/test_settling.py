"""Which number of streams a copy settled on."""

from hypothesis import given
from hypothesis import strategies as st

from mpx.engine.tuner import Sample
from mpx.history.settled import ENOUGH_S, Settled, Settling

RTT_S = 0.05
TICKS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1_000_000), st.floats(0, 1)), max_size=300)


def after(*spells: tuple[int, float, float, float]) -> Settled | None:
    """Return what was found after spells of (streams, seconds, Mbit/s, share of the time held back)."""
    settling, now_s, arrived = Settling(), 0.0, 0.0
    for streams, seconds, mbps, held_back in spells:
        for _ in range(round(seconds / 0.1)):
            now_s += 0.1
            arrived += mbps * 1e6 / 8 * 0.1
            sample = Sample(
                streams, int(arrived), 0, limited_by_receiver=held_back / 2, limited_by_sender=held_back / 2
            )
            settling.observe(now_s, sample)
    return settling.found(RTT_S)


def test_the_number_that_it_had_longest_lately() -> None:
    found = after((4, 20, 50, 0), (16, 12, 90, 0), (32, 30, 100, 0), (22, 3, 80, 0))
    assert found is not None
    assert found.streams == 32
    assert abs(found.goodput_bps - 100e6) < 1e6
    assert found.window_bytes is None


def test_streams_that_come_up_to_speed_do_not_count() -> None:
    found = after((8, 0.9, 10, 0), (8, 12, 100, 0))
    assert found is not None
    assert abs(found.goodput_bps - 100e6) < 1e6


def test_a_trial_of_fewer_is_not_what_it_settled_on() -> None:
    found = after((32, 30, 100, 0), (22, 5, 80, 0), (32, 4, 100, 0))
    assert found is not None
    assert found.streams == 32


def test_what_was_long_ago_counts_for_less() -> None:
    found = after((4, 100, 50, 0), (16, 60, 90, 0))
    assert found is not None
    assert found.streams == 16


def test_a_short_copy_settles_on_nothing() -> None:
    assert after((4, ENOUGH_S, 50, 0)) is None
    assert after() is None


def test_windows_are_known_where_they_were_the_limit() -> None:
    found = after((8, 20, 80, 0.9))
    assert found is not None and found.window_bytes is not None
    assert abs(found.window_bytes - 10e6 / 8 * RTT_S) < 100


@given(TICKS)
def test_whatever_is_measured_it_makes_sense(ticks: list[tuple[int, int, float]]) -> None:
    settling, arrived = Settling(), 0
    for i, (streams, came, held_back) in enumerate(ticks):
        arrived += came
        settling.observe(i / 10, Sample(streams, arrived, 0, limited_by_receiver=held_back))
    found = settling.found(RTT_S)
    if found:
        assert 1 <= found.streams <= 3
        assert 0 < found.goodput_bps <= 80e6 * 1.001
