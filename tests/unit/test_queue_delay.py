"""Whether a queue stands in front of the bottleneck."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.tuning.queue_delay import STANDS_S, Queue

RTT_S = 0.05


def seen(*queues_s: float | None, every_s: float = 0.1) -> tuple[Queue, float]:
    queue, now_s = Queue(), 0.0
    for i, queue_s in enumerate(queues_s):
        now_s = i * every_s
        queue.add(now_s, [queue_s], RTT_S)
    return queue, now_s


def test_nothing_known_is_no_queue() -> None:
    queue, now_s = seen(None, None, None)
    assert not queue.is_full(now_s, RTT_S) and queue.standing(now_s, RTT_S) is None


def test_what_windows_alone_make_is_no_queue() -> None:
    queue, now_s = seen(*[0.0005] * 60)
    assert not queue.is_full(now_s, RTT_S) and queue.standing(now_s, RTT_S) is None


def test_a_burst_does_not_fill_a_path() -> None:
    queue, now_s = seen(*[0.0005] * 40, 0.05, 0.03)
    assert not queue.is_full(now_s, RTT_S)


def test_a_queue_is_full_at_once_and_stands_after_a_while() -> None:
    queue, now_s = seen(*[0.01] * 8)
    assert queue.is_full(now_s, RTT_S) and queue.standing(now_s, RTT_S) is None
    queue, now_s = seen(*[0.01] * round(STANDS_S / 0.1 + 2))
    assert queue.standing(now_s, RTT_S) == pytest.approx(0.01 / 0.06)


def test_losses_empty_it_for_a_moment() -> None:
    queue, now_s = seen(*([0.01] * 9 + [0.0]) * 4)
    assert queue.standing(now_s, RTT_S) == pytest.approx(0.01 / 0.06)
    queue, now_s = seen(*([0.01] * 7 + [0.0] * 3) * 4)
    assert queue.standing(now_s, RTT_S) is None


def test_other_streams_make_a_new_beginning() -> None:
    queue, now_s = seen(*[0.01] * 40)
    queue.clear()
    assert not queue.is_full(now_s, RTT_S) and queue.standing(now_s, RTT_S) is None


@given(st.lists(st.one_of(st.none(), st.floats(-1.0, 10.0)), max_size=80), st.floats(0.0001, 1.0))
def test_it_is_a_share(queues_s: list[float | None], rtt_s: float) -> None:
    queue = Queue()
    for i, queue_s in enumerate(queues_s):
        queue.add(0.1 * i, [queue_s, None], rtt_s)
    share = queue.standing(0.1 * len(queues_s), rtt_s)
    assert share is None or 0 < share < 1
