"""Which ports a controller is to know: never more than it takes, and all of them where there is room."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.multipath.port_registry import MOST_AT_ONCE, Port, PortRegistry, PortRequest

NAMES = ("0", "1", "2")


class Told:
    """A controller that takes `most` streams, and hears of a book as SteeredPaths tells it."""

    def __init__(self, most: int | None) -> None:
        self.book = PortRegistry(NAMES, most)
        self.most = math.inf if most is None else most
        self.on: dict[int, str] = {}
        self.under_way: list[PortRequest] = []  # questions that it has not answered

    def end(self) -> None:
        for side, numbers in self.book.take_ended():
            assert len(numbers) <= MOST_AT_ONCE
            for number in numbers:
                self.on.pop(number, None)  # it may have been refused when it ended
            self.book.left(numbers, side)

    def place(self, now_s: float, taken: int = 0) -> None:
        for (side, over), numbers in self.book.wrong(now_s).items():
            for number in numbers:
                asked = self.book.ask([number], side, over)
                assert asked.numbers == [number]
                self.under_way.append(asked)
                self.answer(-1, now_s, refuses=number == taken)

    def ask(self, now_s: float, number: int) -> None:
        """Ask for what is to be asked for, and perhaps anew for a stream that was listed before."""
        for (side, over), numbers in self.book.wrong(now_s).items():
            first = self.book.ask(numbers, side, over)
            begun = [] if self.book.is_full else [number]
            again = self.book.ask([*numbers, *begun], side, over)
            assert first.numbers == numbers and not set(again.numbers) - {number}
            self.under_way += [first, again]

    def answer(self, which: int, now_s: float, *, refuses: bool) -> None:
        asked = self.under_way.pop(which)
        if refuses:
            self.book.refused(asked)
            self.book.put_off(asked.numbers, asked.side, now_s + 5.0)
        else:
            self.book.granted(asked)
            self.on |= dict.fromkeys(asked.numbers, asked.over)
        assert len(self.on) <= self.most


PORTS = st.integers(1, 12)
STEPS = st.one_of(
    st.tuples(st.just("begin"), PORTS, st.sampled_from(NAMES)),
    st.tuples(st.just("end"), PORTS, st.just("")),
    st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("tell"), PORTS, st.just("")),
    st.tuples(st.just("lose"), PORTS, st.just("")),
    st.tuples(st.just("ask"), PORTS, st.just("")),
    st.tuples(st.just("answer"), PORTS, st.just("")),
    st.tuples(st.just("refuse"), PORTS, st.just("")),
)


@given(st.lists(STEPS, max_size=60), st.one_of(st.none(), st.integers(1, 8)))
def test_a_controller_never_has_too_many_and_in_the_end_all_that_it_takes(
    steps: list[tuple[str, int | str, str]], most: int | None
) -> None:
    told, live, now_s = Told(most), {}, 0.0
    over = dict(zip(NAMES, NAMES, strict=True))
    for what, which, path in steps:
        now_s += 1.0
        if what == "move":
            told.book.move(str(which), path)
            over[str(which)] = path
        elif what == "begin" and which not in live:
            live[int(which)] = path
            told.book.begin((int(which), "source"), Port(path))
        elif what == "end":
            live.pop(int(which), None)
            told.book.end((int(which), "source"), now_s)
        elif what == "tell":
            told.end()
            told.place(now_s, taken=int(which))
        elif what == "lose":
            for side, numbers in told.book.take_ended():
                told.book.not_left(numbers, side, now_s)
        elif what == "ask":
            told.ask(now_s, int(which))
        elif told.under_way:
            told.answer(int(which) % len(told.under_way), now_s, refuses=what == "refuse")
    while told.under_way:
        told.answer(0, now_s, refuses=False)
    told.end()
    told.place(now_s + 5.0)
    assert all(told.on[number] == over[live[number]] for number in told.on)
    assert len(told.on) == min(len(live), told.most) and told.on.keys() <= live.keys()
    assert told.book.due_s() == math.inf


def test_those_that_wait_for_room_have_it_at_once_when_others_have_ended() -> None:
    told = Told(2)
    for number in (1, 2, 3):
        told.book.begin((number, "source"), Port("0"))
    told.place(1.0)
    assert told.book.is_full and told.book.due_s() == math.inf
    told.book.move("0", "1")  # those that are there are moved, whoever waits
    told.place(2.0)
    assert Counter(told.on.values()) == {"1": 2}
    assert told.book.end((1, "source"), 3.0)
    assert told.book.due_s() == 3.0
    told.end()
    told.place(3.0)
    assert told.on == {2: "1", 3: "1"}


def test_a_port_that_two_ask_for_is_asked_for_once_and_again_when_it_was_refused() -> None:
    book = PortRegistry(NAMES, None)
    book.begin((1, "source"), Port("0"))
    ((of, numbers),) = book.wrong(1.0).items()
    first, second = book.ask([1], "source", "0"), book.ask(numbers, *of)
    assert (first.numbers, second.numbers) == ([1], [])
    book.refused(first)
    book.refused(second)
    assert book.wrong(1.0) == {of: [1]} and book.due_s() <= 1.0


@pytest.mark.parametrize("is_granted", [True, False])
def test_only_those_that_are_there_and_belong_there_are_asked_for(is_granted: bool) -> None:
    book = PortRegistry(NAMES, None)
    for number in (1, 2, 3, 4):
        book.begin((number, "source"), Port("0"))
    book.granted(book.ask([4], "source", "0"))
    assert not book.end((1, "source"), 1.0)
    book.end((2, "source"), 1.0)
    book.begin((2, "source"), Port("1"))
    asked = book.ask([1, 2, 3, 4], "source", "0")
    assert asked.numbers == [3]
    book.end((3, "source"), 1.0)
    book.granted(book.ask([2], "source", "1"))
    assert not book.take_ended() and book.due_s() == math.inf  # it waits for the answer
    (book.granted if is_granted else book.unanswered)(asked)
    assert book.take_ended() == [("source", [3])]


def test_a_stream_that_is_to_move_while_it_is_asked_for_is_moved_after_the_answer() -> None:
    book = PortRegistry(NAMES, None)
    book.begin((1, "source"), Port("0"))
    asked = book.ask([1], "source", "0")
    book.move("0", "1")
    assert not book.wrong(1.0) and book.due_s() == math.inf
    assert not book.ask([1], "source", "1").numbers  # the controller could hear that first
    book.granted(asked)
    assert book.wrong(1.0) == {("source", "1"): [1]}
