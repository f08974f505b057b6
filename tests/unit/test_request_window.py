"""How much a session of SFTP has under way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.sftp.request_window import FIRST_BYTES, GOODPUT_S, WINDOW_S, RequestWindow

MIB = 1 << 20
LEAST, LARGEST = MIB // 2, 32 * MIB


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
    parts = slow_start(RequestWindow(LEAST, LARGEST), rate, rtt_s, 5.0)
    assert min(parts) == (1 if rate * rtt_s < LARGEST else pytest.approx(LARGEST / rate / rtt_s, rel=0.01))


def test_it_waits_for_the_first_answer() -> None:
    """Where blocks are large the first takes some round trips, and says nothing of goodput until then."""
    window = RequestWindow(LEAST, LARGEST)
    for i in range(10):
        window.measure(1.0 + i * GOODPUT_S, 0, 0.06)
    assert window.bytes == FIRST_BYTES


def test_then_it_follows_goodput() -> None:
    window, rate, rtt_s = RequestWindow(LEAST, LARGEST), 10e6, 0.06
    slow_start(window, rate, rtt_s, 10.0)
    assert window.bytes == pytest.approx(rate * (rtt_s + WINDOW_S), rel=0.15)  # round trips are no multiple


@given(st.lists(st.tuples(st.floats(0.01, 1.0), st.integers(0, 100 * MIB)), max_size=60), st.floats(0, 1))
def test_it_has_bounds(steps: list[tuple[float, int]], rtt_s: float) -> None:
    window, now_s, moved = RequestWindow(LEAST, LARGEST), 1.0, 0
    for took_s, size_bytes in steps:
        now_s, moved = now_s + took_s, moved + size_bytes
        window.answered(size_bytes)
        assert window.measure(now_s, moved, rtt_s) in (True, False)
        assert LEAST <= window.bytes <= LARGEST


def test_another_session_begins_slowly_again() -> None:
    window = RequestWindow(LEAST, LARGEST)
    slow_start(window, 10e6, 0.06, 10.0)
    held = window.bytes
    window.answered(MIB)
    assert window.bytes == held
    window.restart()
    window.answered(MIB)
    assert window.bytes == held + MIB
