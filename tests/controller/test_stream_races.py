"""Streams that begin and end while the controller is being asked about them."""

import math
import threading
from collections.abc import Callable, Sequence

import pytest
from steering import placing, steered

from mpx import sdn_client
from mpx.multipath import steering as steered_paths

Eventually = Callable[..., None]


def test_a_stream_that_was_placed_too_late_is_taken_off_at_its_end(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 1000.0)  # nobody tells it anew meanwhile
    with steered() as (book, steering):
        monkeypatch.setattr(sdn_client, "ANSWER_S", 0.1)
        book.answers.clear()
        steering.begin("1", 40_001)
        assert "does not answer" in steering.notes[0]
        monkeypatch.setattr(sdn_client, "ANSWER_S", 30.0)
        book.answers.set()
        eventually(lambda: book.sets == {1: {40_001: 1}})
        steering.paths._away_until_s = 0.0
        steering.paths.ended(40_001, "source")
        eventually(lambda: book.sets == {1: {}})


def test_a_port_that_two_ask_for_and_both_are_refused_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.2)
    with steered(taken={40_001}) as (book, steering):
        asked: list[int] = []

        def before(ports: Sequence[int]) -> None:
            asked.extend(ports)
            if len(asked) == 1:  # the thread has listed it before
                steering.paths._put([40_001], "source", "0")
                assert asked == [40_001]

        placing(monkeypatch, steering, before)
        steering.begin("0", 40_001)
        book.taken.clear()
        eventually(lambda: book.sets == {1: {40_001: 0}})


@pytest.mark.parametrize("is_refused", [True, False], ids=["other half", "other path"])
def test_a_stream_that_ends_before_it_is_asked_for_is_never_placed(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually, is_refused: bool
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.2)
    with steered() as (book, steering):
        steering.paths._away_until_s = math.inf
        steering.begin("0", 40_001)
        steering.begin("0" if is_refused else "1", 40_002, 40_003)
        asked: list[int] = []

        def before(ports: Sequence[int]) -> None:
            asked.extend(ports)
            if list(ports) == [40_001]:
                steering.paths.ended(40_002, "source")

        placing(monkeypatch, steering, before)
        book.taken = {40_001} if is_refused else set()
        steering.paths._away_until_s = 0.0
        steering.paths.move("2", "2")  # have the thread look
        eventually(lambda: 40_003 in book.sets[1])
        book.taken.clear()
        eventually(lambda: book.sets[1].keys() == {40_001, 40_003})
        assert asked.count(40_002) == is_refused  # with all others, before it had ended


def test_a_stream_that_ends_while_it_is_asked_for_is_taken_off_after_the_answer(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    with steered() as (book, steering):

        def before(ports: Sequence[int]) -> None:
            steering.paths.ended(ports[0], "source")
            steering.paths._report_ended()

        placing(monkeypatch, steering, before)
        steering.begin("0", 40_001)
        assert book.sets == {1: {40_001: 0}}
        eventually(lambda: book.sets == {1: {}})


def test_a_port_that_is_used_anew_while_it_is_asked_for_is_on_its_new_path_when_it_may_connect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with steered() as (book, steering):
        anew = threading.Thread(target=steering.begin, args=("2", 40_001))

        def before(_: Sequence[int]) -> None:
            if not book.sets[1] and not anew.ident:
                steering.paths.ended(40_001, "source")
                anew.start()
                anew.join(0.5)  # it waits for the answer
                assert not book.sets[1]

        placing(monkeypatch, steering, before)
        steering.begin("0", 40_001)
        anew.join(60)
        assert book.sets == {1: {40_001: 2}} and not steering.notes


def test_streams_that_have_ended_are_told_of_when_the_controller_is_back(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.1)
    with steered() as (book, steering):
        steering.begin("0", 40_001, 40_002)
        book.away = True
        steering.paths.ended(40_001, "source")
        requests = book.requests
        eventually(lambda: book.requests > requests + 1)
        book.away = False
        eventually(lambda: book.sets == {1: {40_002: 0}})
