"""When BBR takes the place of CUBIC, as losses are random and the number of streams cannot grow."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.choices import BBR, CUBIC
from mpx.engine.tuner import Sample
from mpx.recognition.policy import Switch
from mpx.recognition.random_losses import FEW_LOSSES, PATIENCE_S, RandomLosses

RTT_S = 0.06
MOVING = Sample(streams=1, arrived_bytes=1, bytes_left=1 << 30, rtt_s=RTT_S, queue_s=0.0)


def first_switch(
    decider: RandomLosses, samples: list[Sample], began_s: float = 0.0, wanted: int = 1
) -> tuple[float, Switch] | None:
    """The first switch that a path asks for that is looked at every 100 ms."""
    for i, sample in enumerate(samples):
        now_s = began_s + i / 10
        if switch := decider.observe(now_s, sample, wanted):
            return now_s, switch
    return None


def losing(count: int, *, queued: int = 0, queue_s: float = 0.0, steps: int = 100) -> list[Sample]:
    """A path that has lost so many segments in the end, some of them in a queue."""
    return [
        replace(
            MOVING,
            arrived_bytes=1 + i * 100_000,
            retransmits=(count + queued) * i // steps,
            queued_lost=queued * i // steps,
            queue_s=queue_s,
        )
        for i in range(steps + 1)
    ]


def test_random_losses_ask_for_bbr() -> None:
    found = first_switch(RandomLosses(CUBIC), losing(10))
    assert found is not None
    assert found[1].congestion == BBR


def test_too_few_losses_say_nothing() -> None:
    assert first_switch(RandomLosses(CUBIC), losing(FEW_LOSSES - 1)) is None


def test_nothing_is_decided_while_streams_begin() -> None:
    found = first_switch(RandomLosses(CUBIC), [replace(MOVING, retransmits=10 * (i > 0)) for i in range(20)])
    assert found is not None
    assert found[0] >= 8 * RTT_S


@pytest.mark.parametrize("queue_s", [0.02, 0.06])
def test_a_path_that_is_filled_keeps_cubic(queue_s: float) -> None:
    assert first_switch(RandomLosses(CUBIC), losing(0, queued=50, queue_s=queue_s)) is None
    assert first_switch(RandomLosses(CUBIC), losing(50, queue_s=queue_s)) is None  # windows too small to tell


def test_losses_in_a_queue_do_not_count() -> None:
    assert first_switch(RandomLosses(CUBIC), losing(0, queued=50)) is None


def several(streams: int, left_bytes: int) -> list[Sample]:
    """Streams that carry 80 Mbit/s and lose segments, with so much left."""
    return [
        replace(sample, streams=streams, arrived_bytes=1 + i * 1_000_000, bytes_left=left_bytes)
        for i, sample in enumerate(losing(50))
    ]


@pytest.mark.parametrize(
    ("streams", "wanted", "left_bytes", "switches"),
    [
        (4, 4, 1 << 30, False),  # the tuner may have more
        (4, 5, 1 << 30, True),  # it has asked for more, which do not come: files are streams, or they are few
        (5, 16, 1 << 30, False),  # more than the share fill a queue of their own
        (16, 24, 1 << 24, True),  # but the last parts are soon sent
        (17, 24, 1 << 24, False),
        (24, 24, 1 << 24, False),
    ],
)
def test_several_streams_switch_where_there_is_no_work_for_more(
    streams: int, wanted: int, left_bytes: int, switches: bool
) -> None:
    decider = RandomLosses(CUBIC, share=4, most_streams=256)
    found = first_switch(decider, several(streams, left_bytes), wanted=wanted)
    assert (found is not None) == switches


def test_more_streams_than_may_have_bbr_go_back() -> None:
    """Further files were found as the last parts of the first one were under way."""
    decider = RandomLosses(CUBIC, share=4, most_streams=256)
    assert first_switch(decider, several(10, 1 << 24), wanted=24) is not None
    decider.switched(20.0, BBR)
    assert first_switch(decider, several(10, 1 << 24), 20.0, wanted=24) is None
    found = first_switch(decider, several(10, 1 << 30), 40.0, wanted=24)
    assert found is not None and found[1].congestion == CUBIC


def test_streams_that_are_opening_are_waited_for() -> None:
    decider = RandomLosses(CUBIC, share=4, most_streams=256)
    opening = [replace(sample, changing=True) for sample in several(4, 1 << 30)]
    assert first_switch(decider, opening, wanted=16) is None
    began_s = len(opening) / 10
    found = first_switch(decider, several(4, 1 << 30), began_s, wanted=16)
    assert found is not None and found[0] > began_s + 8 * RTT_S


def test_a_queue_that_stands_asks_for_cubic_again() -> None:
    decider = RandomLosses(CUBIC)
    assert first_switch(decider, losing(50), began_s=-10.0) is not None
    decider.switched(0.0, BBR)
    short = [replace(MOVING, queue_s=0.01)] * 100
    assert first_switch(decider, short) is None
    found = first_switch(decider, [replace(MOVING, queue_s=0.03)] * 100, began_s=10.0)
    assert found is not None
    assert found[1].congestion == CUBIC
    decider.switched(found[0], CUBIC)
    assert first_switch(decider, losing(50), began_s=found[0] + 0.1) is None  # not again so soon
    assert first_switch(decider, losing(50), began_s=found[0] + 200) is not None


def test_what_others_have_switched_to_is_left_alone() -> None:
    """Who recognises BBR beside the streams asks for it whatever queue stands, and for CUBIC beside CUBIC."""
    decider = RandomLosses(CUBIC)
    decider.switched(0.0, BBR)
    assert first_switch(decider, [replace(MOVING, queue_s=0.03)] * 100) is None
    decider.switched(10.0, CUBIC)
    assert first_switch(decider, losing(50), began_s=10.1) is None
    assert first_switch(decider, losing(50), began_s=10.1 + PATIENCE_S) is not None


def test_a_refusal_is_not_asked_for_again() -> None:
    decider = RandomLosses(CUBIC)
    assert first_switch(decider, losing(50)) is not None
    decider.refused()
    assert first_switch(decider, losing(500), began_s=100.0) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 0.1)), max_size=100))
def test_without_losses_nothing_is_asked_for(steps: list[tuple[int, float]]) -> None:
    queued, samples = 0, []
    for lost, queue_s in steps:
        queued += lost
        samples.append(replace(MOVING, retransmits=queued, queued_lost=queued, queue_s=queue_s))
    assert first_switch(RandomLosses(CUBIC), samples) is None
