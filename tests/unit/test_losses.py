"""Why segments are lost: made-up paths that lose at random, at a full queue, or above a rate."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.engine.round_trips import SEGMENT_BYTES
from mpx.engine.tuner import Sample
from mpx.tuning.adaptive import AutoTuner
from mpx.tuning.losses import POLICER, QUEUE, RANDOM, LossJudge, response_bps
from mpx.tuning.measurement import Losses

RTT_S = 0.06
TICK_S = 0.1


class Told:
    """Feeds a judge, tick by tick, with what a number of streams carries and loses."""

    def __init__(self, seed: int = 1) -> None:
        self.judge, self.said = LossJudge(), []
        self._now_s, self._arrived, self._lost = 0.0, 0.0, 0.0
        self._queued = [0.0, 0.0]  # what of both while a queue stood
        self._chance = random.Random(seed)

    def run(
        self,
        streams: int,
        seconds: float,
        segments_s: float,
        loss: float,
        *,
        queue: float | None = 0.0,
        without: float | None = None,
    ) -> None:
        """`queue`: the share of the time in which one stands, at the end of each three seconds.

        `without`: the losses while none does, if they are others.
        """
        ticks = round(seconds / TICK_S)
        for tick in range(ticks):
            self._now_s += TICK_S
            segments = segments_s * TICK_S
            self._arrived += segments * SEGMENT_BYTES
            stands = None if queue is None else tick % 30 >= 30 * (1 - queue)
            mean = segments * (loss if stands or without is None else without)
            lost = sum(self._chance.random() < mean / 50 for _ in range(50))
            self._lost += lost
            if stands:
                self._queued[0] += segments * SEGMENT_BYTES
                self._queued[1] += lost
            why = self.judge.observe(
                self._now_s,
                tick * TICK_S,
                streams,
                None
                if queue is None
                else Losses(round(self._arrived), round(self._lost), *map(round, self._queued)),
                rtt_s=RTT_S,
            )
            self.said += [why] if why else []

    def run_two_doses(self) -> None:
        """Four streams, then sixteen: the same losses with both, and four times as much arrives."""
        self.run(4, 20, 2600, 0.005)
        self.run(16, 20, 10400, 0.005)


@pytest.mark.parametrize("seed", range(20))
def test_the_same_losses_with_more_streams_are_random(seed: int) -> None:
    told = Told(seed)
    told.run(4, 20, 2600, 0.005)
    assert told.judge.kind is None
    told.run(16, 20, 10400, 0.005)
    assert told.judge.kind == RANDOM
    assert len(told.said) == 1 and "with 16 streams" in told.said[0] and "Mbit/s" in told.said[0]


@pytest.mark.parametrize("seed", range(20))
def test_the_same_losses_with_and_without_a_queue_are_random(seed: int) -> None:
    told = Told(seed)
    told.run(30, 60, 16000, 0.002, queue=0.5)
    assert told.judge.kind == RANDOM


@pytest.mark.parametrize("seed", range(20))
def test_losses_that_grow_with_the_streams_while_no_queue_stands_are_of_a_policer(seed: int) -> None:
    told = Told(seed)
    told.run(4, 20, 8000, 0.002)
    told.run(16, 20, 8000, 0.012)
    assert told.judge.kind == POLICER and "above a rate" in told.said[0]


def test_so_few_losses_leave_it_open_whether_they_grow() -> None:
    """Twenty, and thirty-six with half as many streams more: by chance, or as those of CUBIC grow."""
    judge, arrived, lost, now_s = LossJudge(), 0, 0, 0.0
    for streams, losses in ((4, 20), (6, 36)):
        for tick in range(101):
            now_s += TICK_S
            judge.observe(now_s, 60.0, streams, Losses(arrived, lost + losses * tick // 100), rtt_s=RTT_S)
            arrived += 1448 * 100
        lost += losses
    assert judge.kind is None


def test_losses_only_while_a_queue_stands_are_those_of_a_full_path() -> None:
    told = Told()
    told.run(4, 60, 16000, 0.004, queue=0.25, without=0.0)
    assert told.judge.kind == QUEUE and "full" in told.said[0]


def test_where_a_queue_has_always_stood_there_is_nothing_to_compare_with() -> None:
    told = Told()
    told.run(16, 30, 16000, 0.003, queue=1.0)
    assert told.judge.kind is None
    told.run(4, 30, 12000, 0.0)
    told.run(16, 30, 16000, 0.003, queue=1.0)
    assert told.judge.kind == QUEUE


@pytest.mark.parametrize("seed", range(20))
def test_losses_of_fewer_streams_without_a_queue_show_that_those_of_a_full_path_are_random(seed: int) -> None:
    told = Told(seed)
    told.run(18, 20, 14000, 0.001)
    told.run(27, 30, 16000, 0.0012, queue=1.0)
    assert told.judge.kind == RANDOM


def test_a_queue_that_stands_later_does_not_make_random_losses_others() -> None:
    told = Told()
    told.run_two_doses()
    told.run(64, 60, 16000, 0.006, queue=1.0)
    assert told.judge.kind == RANDOM and len(told.said) == 1


def test_a_full_path_is_looked_at_again_after_two_minutes() -> None:
    told = Told()
    told.run(16, 20, 8000, 0.012, queue=0.25, without=0.0)
    assert told.judge.kind == QUEUE
    told.run(4, 150, 8000, 0.0)
    assert told.judge.kind is None
    told.run(16, 20, 8000, 0.012, queue=0.25, without=0.0)
    assert told.judge.kind == QUEUE


def test_losses_that_end_are_random_no_more() -> None:
    told = Told()
    told.run_two_doses()
    told.run(32, 20, 10400, 0.0)
    assert told.judge.kind is None and "ended" in told.said[-1]


def test_twenty_losses_are_too_few_for_an_answer_where_windows_limit_a_stream() -> None:
    """One stream would carry all: random or not, these losses limit nothing."""
    told = Told()
    told.run(4, 100, 2000, 0.00001)
    told.run(16, 100, 2000, 0.0002)
    assert told.judge.kind in (None, POLICER)
    rare = Told()
    rare.run(1, 200, 200, 0.003)
    rare.run(2, 200, 200, 0.003)
    assert rare.judge.kind is None


def test_nothing_is_said_where_nobody_knows_of_queues_or_just_after_a_change() -> None:
    told = Told()
    told.run(4, 30, 10000, 0.01, queue=None)
    for streams in range(4, 40):
        told.run(streams, 1.0, 10000, 0.01)
    assert told.judge.kind is None and not told.said


def test_new_streams_are_measured_anew() -> None:
    told = Told()
    told.run(4, 20, 2600, 0.005)
    told.judge.restart()
    told.run(16, 20, 10400, 0.005)
    assert told.judge.kind is None


def test_an_outage_in_which_all_is_sent_again_says_nothing() -> None:
    judge = LossJudge()
    for tick in range(100):
        why = judge.observe(
            0.1 * tick,
            60.0,
            64,
            Losses(1000, 64 * tick),
            rtt_s=RTT_S,
        )
        assert not why
    assert judge.kind is None


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 10**7), st.integers(0, 99), st.booleans())))
def test_whatever_arrives_and_is_lost_there_is_an_answer_or_none(
    ticks: list[tuple[int, int, int, bool]],
) -> None:
    judge, arrived, lost, queued, queued_lost = LossJudge(), 0, 0, 0, 0
    for tick, (streams, bytes_more, lost_more, has_queue) in enumerate(ticks):
        arrived, lost = arrived + bytes_more, lost + lost_more
        queued, queued_lost = queued + has_queue * bytes_more, queued_lost + has_queue * lost_more
        judge.observe(
            0.1 * tick,
            60.0,
            streams,
            Losses(arrived, lost, queued, queued_lost),
            rtt_s=RTT_S,
        )
    assert judge.kind in (None, RANDOM, QUEUE, POLICER)


@given(st.floats(1e-6, 0.2), st.floats(0.001, 1.0))
def test_the_response_function_is_that_of_rfc_9438(loss: float, rtt_s: float) -> None:
    carried = response_bps(loss, rtt_s)
    window = carried * rtt_s / 8 / SEGMENT_BYTES
    assert window == pytest.approx(max(1.054 * (rtt_s / loss) ** 0.75, math.sqrt(1.5 / loss)))
    assert response_bps(loss * 1.1, rtt_s) < carried and response_bps(loss, rtt_s * 1.1) < carried


def test_why_segments_are_lost_is_said_and_changes_no_number() -> None:
    """A path that loses one segment of a hundred: each stream carries 600 a second, 40 fill it."""
    tuner, streams, now, arrived, lost = AutoTuner(), 4, 0.0, 0.0, 0.0
    said = []
    for _ in range(1200):
        now += 0.1
        carried = 0.1 * min(streams * 600, 24_000)
        arrived, lost = arrived + carried * 1448, lost + carried / 100
        sample = Sample(streams, round(arrived), 10**12, 0.05, round(lost), 0.0, 0.0, 0.0)
        for decision in tuner.observe(now, {"p": sample}):
            if "lost" in decision.reason:
                said.append((decision, streams))
            streams = decision.streams
    (decision, before), *more = said
    assert not more and decision.streams == before
    assert decision.reason.startswith("losses are random: 1.00% of the segments are lost")
