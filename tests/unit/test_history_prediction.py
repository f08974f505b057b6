"""With how many streams a copy begins, from what earlier ones came to."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mpx.history.outcome import Outcome
from mpx.history.prediction import HALVES_S, MOST, OLDEST_S, as_before, by_rate

NOW_S = 1_800_000_000.0
FOUND = Outcome(NOW_S - 60, 0.060, 24, 180e6, None)
OUTCOMES = st.builds(
    Outcome,
    st.floats(1, 2 * NOW_S),
    st.floats(1e-4, 10),
    st.integers(1, 10_000),
    st.floats(1, 1e12),
    st.none() | st.floats(1, 1e12),
)


def test_the_number_is_that_of_the_bandwidth_the_rtt_and_the_window() -> None:
    """10 Gbit/s and 100 ms are 125 MB; windows of 3 MiB carry that with 40 streams."""
    predicted = by_rate(10e9, 0.1, 3 * 2**20, [], NOW_S)
    assert predicted is not None
    assert predicted.streams == math.ceil(125e6 / (3 * 2**20)) == 40
    assert "10 Gbit/s" in predicted.reason and "3 MiB that a stream may have" in predicted.reason


def test_a_window_that_streams_had_counts_for_more_than_our_buffer() -> None:
    limited = replace(FOUND, goodput_bps=200e6, window_bytes=65536.0)
    predicted = by_rate(200e6, 0.060, 3 * 2**20, [limited], NOW_S)
    assert predicted is not None
    assert predicted.streams == math.ceil(1.5e6 / 65536)
    assert "64 KiB that a stream had before" in predicted.reason


def test_no_stream_is_thought_to_have_less_than_it_had() -> None:
    had_bytes = FOUND.goodput_bps / 8 * FOUND.rtt_s / FOUND.streams
    predicted = by_rate(200e6, 0.060, 1000, [FOUND], NOW_S)
    assert predicted is not None
    assert predicted.streams == math.ceil(1.5e6 / had_bytes)


def test_windows_of_long_ago_and_of_other_paths_do_not_count() -> None:
    """Somebody has raised the limits since."""
    limited = replace(FOUND, when_s=NOW_S - OLDEST_S - 1, window_bytes=65536.0)
    for earlier in ([limited], [replace(limited, when_s=NOW_S - 60, rtt_s=0.2)]):
        predicted = by_rate(200e6, 0.060, 3 * 2**20, earlier, NOW_S)
        assert predicted is not None and predicted.streams == 1
    larger = replace(FOUND, streams=1, goodput_bps=400e6)  # 3 MB in a stream
    predicted = by_rate(200e6, 0.060, 1000, [replace(limited, when_s=NOW_S - 60), larger], NOW_S)
    assert predicted is not None and predicted.streams == 1


def test_the_window_that_limited_streams_last_counts_and_not_what_they_had_before() -> None:
    before = replace(FOUND, when_s=NOW_S - 90, streams=4)
    limited = replace(FOUND, when_s=NOW_S - 60, streams=34, window_bytes=42_000.0)
    predicted = by_rate(200e6, 0.060, 3 * 2**20, [before, limited], NOW_S)
    assert predicted is not None and predicted.streams == math.ceil(1.5e6 / 42_000)


def test_a_window_of_nearly_nothing_is_no_reason_to_fail() -> None:
    """As a damaged file has it."""
    tiny = replace(FOUND, goodput_bps=1e-320, window_bytes=1e-320)
    predicted = by_rate(10e9, 0.060, 3 * 2**20, [tiny], NOW_S)
    assert predicted is not None and predicted.streams == MOST


def test_where_no_window_is_known_nothing_is_predicted() -> None:
    assert by_rate(200e6, 0.060, None, [], NOW_S) is None


@given(st.floats(1, 1e13), st.floats(1e-6, 10), st.none() | st.integers(1, 2**40), st.lists(OUTCOMES))
def test_there_are_always_some_and_never_many(
    rate_bps: float, rtt_s: float, largest_bytes: int | None, earlier: list[Outcome]
) -> None:
    predicted = by_rate(rate_bps, rtt_s, largest_bytes, earlier, NOW_S)
    assert predicted is None or 1 <= predicted.streams <= MOST


def test_the_next_copy_needs_what_the_last_one_found() -> None:
    predicted = as_before([replace(FOUND, streams=5), FOUND], 0.060, NOW_S)
    assert predicted is not None
    assert predicted.streams == 24
    assert predicted.reason == "as a copy 1 min 00 s ago settled on 24 streams with 180 Mbit/s"


def test_streams_follow_the_round_trip_time() -> None:
    """Of a stream that windows or losses limit the goodput falls with it."""
    predicted = as_before([FOUND], 0.075, NOW_S)
    assert predicted is not None
    assert predicted.streams == 30
    assert as_before([FOUND], 0.100, NOW_S) is None  # another path


def test_what_was_seen_fades() -> None:
    then_s = FOUND.when_s
    later = [as_before([FOUND], 0.060, then_s + age_s) for age_s in (0, HALVES_S, 2 * HALVES_S, OLDEST_S)]
    counts = [each.streams for each in later if each]
    assert counts == sorted(counts, reverse=True)
    assert counts[1] == round(4 * math.sqrt(6))
    assert as_before([FOUND], 0.060, then_s + OLDEST_S + 1) is None
    assert as_before([FOUND], 0.060, then_s - 1) is None  # a clock that was set back


@given(st.lists(OUTCOMES), st.floats(1e-4, 10), st.floats(1, 2 * NOW_S), st.integers(1, 300))
def test_more_than_usual_is_expected_or_nothing(
    earlier: list[Outcome], rtt_s: float, now_s: float, share: int
) -> None:
    predicted = as_before(earlier, rtt_s, now_s, share)
    assert predicted is None or share < predicted.streams <= MOST
