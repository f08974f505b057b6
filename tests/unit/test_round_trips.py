"""What the round trips of one stream tell of queues in its way."""

from mpx.engine.round_trips import InQueue, Queueing, least_queue_s

RTT_S = 0.04
TICK_S = 0.1


def places(rtts_s: list[float], bps: float) -> list[Queueing]:
    stream = InQueue()
    return [
        stream.place(TICK_S * tick, rtt_s, RTT_S, round(bps * TICK_S / 8))
        for tick, rtt_s in enumerate(rtts_s)
    ]


def test_a_queue_that_comes_and_goes_shows_and_lingers() -> None:
    rising = [RTT_S + 0.0004 * tick for tick in range(25)]
    found = places([RTT_S] * 100 + rising + [RTT_S] * 60, 50e6)
    assert set(found[60:100]) == {Queueing.CLEAR}
    assert found[124] is Queueing.QUEUED
    assert found[126] is Queueing.QUEUED and found[130] is Queueing.CLEAR  # 7 round trips, 0.3 s at least


def test_what_is_always_so_is_no_queue() -> None:
    """Late acknowledgements, or a queue of others that never empties: only more than that shows."""
    found = places([RTT_S + 0.01] * 200, 50e6)
    assert set(found[100:]) == {Queueing.CLEAR}


def test_of_small_windows_nobody_can_tell() -> None:
    """Ten segments: the queue comes and goes within a few round trips."""
    assert set(places([RTT_S] * 100, 10 * 1448 * 8 / RTT_S)[60:]) == {Queueing.UNTOLD}
    assert set(places([RTT_S] * 100, 60 * 1448 * 8 / RTT_S)[60:]) == {Queueing.CLEAR}


def test_without_a_round_trip_nobody_can_tell() -> None:
    assert InQueue().place(0.0, 0.0, 0.0, 1000) is Queueing.UNTOLD


def test_late_acknowledgements_are_no_queue() -> None:
    assert least_queue_s(1448 * 8 / 0.1, 0.1) == 0.08  # one segment for each round trip
    assert least_queue_s(1e9, 0.1) == 0.002 and least_queue_s(1e9, 0.001) == 0.001
