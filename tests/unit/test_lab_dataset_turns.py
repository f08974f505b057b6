"""When runs of a dataset may begin."""

import threading
from collections.abc import Iterator

import pytest
from mpx_lab.dataset.turns import ROOM, Turns

from mpx.errors import Interrupted


def test_the_first_begins_at_once_and_others_when_the_processors_have_room() -> None:
    looks: Iterator[float] = iter([1.0, ROOM + 0.01, ROOM, 1.0])
    turns = Turns(lambda: next(looks))
    with turns.turn() as first:
        first.close()
        with turns.turn():
            assert list(looks) == [1.0]
    with turns.turn():  # nobody is under way any more, so it does not look
        pass


def test_one_begins_at_a_time() -> None:
    turns = Turns(lambda: 0.0)
    both = threading.Barrier(2)
    met = []

    def begin() -> None:
        with turns.turn():
            try:
                both.wait(0.2)  # which nobody else comes to while one begins
                met.append(True)
            except threading.BrokenBarrierError:
                met.append(False)

    others = [threading.Thread(target=begin) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert met == [False, False]


def test_who_waits_for_room_may_be_interrupted() -> None:
    def told_to_end() -> float:
        raise Interrupted

    turns = Turns(told_to_end)
    with turns.turn() as first:
        first.close()
        with pytest.raises(Interrupted), turns.turn():
            pass
    with turns.turn():
        pass
