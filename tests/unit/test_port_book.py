"""Which ports a controller is to know: never more than it takes, and all of them where there is room."""

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mpx.port_book import MOST_AT_ONCE, Port, PortBook

NAMES = ("0", "1", "2")


class Told:
    """A controller that takes `most` streams, and hears of a book as SteeredPaths tells it."""

    def __init__(self, most: int | None) -> None:
        self.book = PortBook(NAMES, most)
        self.most = math.inf if most is None else most
        self.on: dict[int, str] = {}

    def end(self) -> None:
        for side, numbers in self.book.take_ended():
            assert len(numbers) <= MOST_AT_ONCE
            for number in numbers:
                self.on.pop(number)
            self.book.left(numbers, side)

    def place(self, now_s: float, taken: int = 0) -> None:
        for (side, over), numbers in self.book.wrong(now_s).items():
            for number in numbers:
                asked = self.book.ask([number], side, over)
                if number == taken:
                    asked.refused()
                    self.book.put_off([number], side, now_s + 5.0)
                else:
                    self.on[number] = over
                assert len(self.on) <= self.most


PORTS = st.integers(1, 12)
STEPS = st.one_of(
    st.tuples(st.just("begin"), PORTS, st.sampled_from(NAMES)),
    st.tuples(st.just("end"), PORTS, st.just("")),
    st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("tell"), PORTS, st.just("")),
    st.tuples(st.just("lose"), PORTS, st.just("")),
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
