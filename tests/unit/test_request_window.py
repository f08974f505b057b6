"""How much a session of SFTP has under way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.sftp.request_window import (
    FIRST_BYTES,
    GOODPUT_S,
    LARGEST_ALONE_BYTES,
    LARGEST_BYTES,
    WINDOW_ALONE_S,
    WINDOW_S,
    RequestWindow,
)

MIB = 1 << 20
LEAST = MIB // 2


def slow_start(window: RequestWindow, rate: float, rtt_s: float, lasts_s: float) -> list[float]:
    """A connection that carries ten segments in its first round trip, and twice as much in each further one.

    Up to `rate`, bytes/s. Returns which part of what it could have carried the window has let it.
    """
    now_s, moved, could, parts = 100.0, 0, 10 * 1448.0, []
    while now_s < 100.0 + lasts_s:
        could = min(2 * could, rate * rtt_s)
        carried = int(min(could, window.bytes))
        parts.append(carried / could)
        moved += carried
        now_s += rtt_s
        window.answered(carried)
        window.measure(now_s, moved, rtt_s)
    return parts


@pytest.mark.parametrize("rtt_s", [0.005, 0.03, 0.06, 0.12, 0.25])
@pytest.mark.parametrize("rate", [12.5e6, 62.5e6, 125e6])
def test_a_window_holds_no_slow_start_back(rate: float, rtt_s: float) -> None:
    parts = slow_start(RequestWindow(LEAST, shares_files=False), rate, rtt_s, 5.0)
    assert min(parts) == (
        1
        if rate * rtt_s < LARGEST_ALONE_BYTES
        else pytest.approx(LARGEST_ALONE_BYTES / rate / rtt_s, rel=0.01)
    )


def test_it_waits_for_the_first_answer() -> None:
    """Where blocks are large the first takes some round trips, and says nothing of goodput until then."""
    window = RequestWindow(LEAST, shares_files=False)
    for i in range(10):
        window.measure(1.0 + i * GOODPUT_S, 0, 0.06)
    assert window.bytes == FIRST_BYTES


def test_then_it_follows_goodput() -> None:
    window, rate, rtt_s = RequestWindow(LEAST, shares_files=False), 10e6, 0.06
    slow_start(window, rate, rtt_s, 10.0)
    assert window.bytes == pytest.approx(
        rate * (rtt_s + WINDOW_ALONE_S), rel=0.15
    )  # round trips are no multiple


@given(st.lists(st.tuples(st.floats(0.01, 1.0), st.integers(0, 100 * MIB)), max_size=60), st.floats(0, 1))
def test_it_has_bounds(steps: list[tuple[float, int]], rtt_s: float) -> None:
    window, now_s, moved = RequestWindow(LEAST, shares_files=False), 1.0, 0
    for took_s, size_bytes in steps:
        now_s, moved = now_s + took_s, moved + size_bytes
        window.answered(size_bytes)
        assert window.measure(now_s, moved, rtt_s) in (True, False)
        assert LEAST <= window.bytes <= LARGEST_ALONE_BYTES


def test_another_session_begins_slowly_again() -> None:
    window = RequestWindow(LEAST, shares_files=False)
    slow_start(window, 10e6, 0.06, 10.0)
    held = window.bytes
    window.answered(MIB)
    assert window.bytes == held
    window.restart()
    window.answered(MIB)
    assert window.bytes == held + MIB


def test_who_shares_a_file_has_no_more_under_way_than_goodput_asks_for() -> None:
    """What is under way cannot be left to others at the end of a file."""
    window = RequestWindow(LEAST, shares_files=True)
    window.answered(LARGEST_BYTES)
    assert window.bytes == FIRST_BYTES
    slow_start(window, 10e6, 0.06, 10.0)
    assert window.bytes == pytest.approx(10e6 * (0.06 + WINDOW_S), rel=0.15)
    window = RequestWindow(LEAST, shares_files=True)
    slow_start(window, 1e9, 0.06, 10.0)
    assert window.bytes == LARGEST_BYTES
